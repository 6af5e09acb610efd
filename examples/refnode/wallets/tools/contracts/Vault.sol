// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// A deposit that its owner can take at a certain time.
contract Vault {
    uint256 public immutable opens;
    address public immutable owner = msg.sender;

    event Taken(uint256 amount, uint256 at);

    error TooEarly(uint256 opens);
    error NotOwner(address caller);

    constructor(uint256 time) payable {
        require(time > block.timestamp, "already open");
        opens = time;
    }

    function take() external {
        require(block.timestamp >= opens, TooEarly(opens));
        require(msg.sender == owner, NotOwner(msg.sender));
        emit Taken(address(this).balance, block.timestamp);
        payable(owner).transfer(address(this).balance);
    }
}
