// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import {Coin} from "../contracts/Coin.sol";
import {Vault} from "../contracts/Vault.sol";

interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Deploys a coin and pays with it, in two transactions, and deploys a vault at an address that
/// is the same on all chains.
contract Deploy {
    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function run() external {
        vm.startBroadcast();
        Coin coin = new Coin();
        coin.pay(address(0xbeef), 5);
        new Vault{salt: "vault"}(type(uint256).max);
        vm.stopBroadcast();
    }
}
