// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

/// A coin whose issuer has all of it at first.
contract Coin {
    uint256 public constant issued = 1000;
    address public immutable issuer = msg.sender;
    mapping(address => uint256) public balanceOf;

    event Paid(address indexed from, address indexed to, uint256 amount);

    constructor() {
        balanceOf[msg.sender] = issued;
    }

    function pay(address to, uint256 amount) external {
        require(balanceOf[msg.sender] >= amount, "too little");
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        emit Paid(msg.sender, to, amount);
    }
}
