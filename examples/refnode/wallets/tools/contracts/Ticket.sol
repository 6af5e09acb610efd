// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";

/// Tickets that only accounts of a role may issue.
contract Ticket is ERC721, AccessControl {
    bytes32 public constant ISSUER = keccak256("ISSUER");
    uint256 public issued;

    constructor() ERC721("Ticket", "TKT") {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
    }

    function issue(address to) external onlyRole(ISSUER) {
        _safeMint(to, ++issued);
    }

    function supportsInterface(
        bytes4 id
    ) public view override(ERC721, AccessControl) returns (bool) {
        return super.supportsInterface(id);
    }
}

/// A contract that takes tickets, and remembers the last one.
contract Booth is IERC721Receiver {
    uint256 public last;

    function onERC721Received(
        address,
        address,
        uint256 id,
        bytes calldata
    ) external returns (bytes4) {
        last = id;
        return this.onERC721Received.selector;
    }
}
