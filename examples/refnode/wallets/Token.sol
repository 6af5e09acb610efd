// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.26;

/// A token as ERC-20 asks for it, and nothing more.
contract Token {
    string public constant name = "Jam jar";
    string public constant symbol = "JAR";
    uint8 public constant decimals = 18;

    uint256 public immutable totalSupply;
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error TooLittle(address owner, uint256 has, uint256 wants);

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        require(allowed >= value, "allowance is too low");
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - value;
        move(from, to, value);
        return true;
    }

    function move(address from, address to, uint256 value) private {
        require(to != address(0), "nobody lives at zero");
        uint256 has = balanceOf[from];
        if (has < value) revert TooLittle(from, has, value);
        unchecked {
            balanceOf[from] = has - value;
            balanceOf[to] += value;
        }
        emit Transfer(from, to, value);
    }
}
