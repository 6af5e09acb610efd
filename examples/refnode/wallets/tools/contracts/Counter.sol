// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {
    OwnableUpgradeable
} from "@openzeppelin/contracts-upgradeable/access/OwnableUpgradeable.sol";
import {Initializable} from "@openzeppelin/contracts/proxy/utils/Initializable.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";

/// A counter behind a proxy, which its owner may upgrade.
contract Counter is Initializable, UUPSUpgradeable, OwnableUpgradeable {
    uint256 public count;

    constructor() {
        _disableInitializers();
    }

    function initialize(address owner) external initializer {
        __Ownable_init(owner);
    }

    function add() external virtual {
        count += 1;
    }

    function _authorizeUpgrade(address) internal override onlyOwner {}
}

/// The next version, whose steps are of ten.
contract CounterOfTens is Counter {
    function add() external override {
        count += 10;
    }
}
