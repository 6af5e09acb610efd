// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import {Coin} from "../contracts/Coin.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Deploys a coin and pays with it, in two transactions.
contract Deploy {
    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function run() external {
        vm.startBroadcast();
        Coin coin = new Coin();
        coin.pay(address(0xbeef), 5);
        vm.stopBroadcast();
    }
}
