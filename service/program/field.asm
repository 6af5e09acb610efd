; Numbers of 256 bits, and the field of Curve25519 (RFC 7748): numbers modulo
; p = 2^255 - 19. A number has four limbs of 64 bits, the lowest first. A number of the
; field may be any of 256 bits, so that it is equal to two others modulo p; "canonical"
; makes it the least of them.
;
; r5 is where add, subtract, add_row and bit return to, r4 is it for the other routines,
; and r3 for power. All may change r1, r2, r6 and r8 to r12. r7, the address of the
; result, stays. The result may take the place of an argument, except in power.

.ro
zero:              .u64 0, 0, 0, 0
one:               .u64 1, 0, 0, 0
prime:             .u64 -19, -1, -1, 0x7fffffffffffffff
prime_less_2:      .u64 -21, -1, -1, 0x7fffffffffffffff
power_of_2:        .u64 38, 0, 0, 0     ; 2^256 modulo p

.rw
product:           .space 64
factor:            .space 8
excess:            .space 32            ; a number below 2^64
canonical_of:      .space 8
lessened:          .space 32
power_base:        .space 8
power_exponent:    .space 8
power_bit:         .space 8

; fn add(to r7, a r8, b r9) -> carry r12
;     for i in 0..4 { (to[i], carry) = a[i] + b[i] + carry }
.code
add:
    load_imm r12, 0
    add_imm_64 r10, r8, 32
add_limb:
    load_ind_u64 r1, r8, 0
    load_ind_u64 r2, r9, 0
    add_64 r1, r1, r12
    set_lt_u r12, r1, r12
    add_64 r1, r1, r2
    set_lt_u r2, r1, r2
    add_64 r12, r12, r2
    store_ind_u64 r1, r7, 0
    add_imm_64 r7, r7, 8
    add_imm_64 r8, r8, 8
    add_imm_64 r9, r9, 8
    branch_ne r8, r10, add_limb
    add_imm_64 r7, r7, -32
    return r5

; fn subtract(to r7, a r8, b r9) -> borrow r12
;     for i in 0..4 { (to[i], borrow) = a[i] - b[i] - borrow }
subtract:
    load_imm r12, 0
    add_imm_64 r10, r8, 32
subtract_limb:
    load_ind_u64 r1, r8, 0
    load_ind_u64 r2, r9, 0
    sub_64 r11, r1, r12
    set_lt_u r12, r1, r12
    sub_64 r1, r11, r2
    set_lt_u r2, r11, r2
    add_64 r12, r12, r2
    store_ind_u64 r1, r7, 0
    add_imm_64 r7, r7, 8
    add_imm_64 r8, r8, 8
    add_imm_64 r9, r9, 8
    branch_ne r8, r10, subtract_limb
    add_imm_64 r7, r7, -32
    return r5

; fn add_row(x r8, from r9, to r10) -> carry r12
;     for i in 0..4 { (to[i], carry) = to[i] + x * from[i] + carry }
;     Two limbs hold that: (2^64 - 1)^2 + 2 * (2^64 - 1) < 2^128. r10 is behind the last
;     limb afterwards.
add_row:
    load_imm r12, 0
    add_imm_64 r6, r9, 32
row_limb:
    load_ind_u64 r2, r9, 0
    mul_64 r1, r8, r2
    mul_upper_u_u r2, r8, r2
    add_64 r1, r1, r12
    set_lt_u r12, r1, r12
    add_64 r12, r12, r2
    load_ind_u64 r2, r10, 0
    add_64 r1, r1, r2
    set_lt_u r2, r1, r2
    add_64 r12, r12, r2
    store_ind_u64 r1, r10, 0
    add_imm_64 r9, r9, 8
    add_imm_64 r10, r10, 8
    branch_ne r9, r6, row_limb
    return r5

; fn bit(number r8, index r9) -> r12
;     Of the registers, r8 and r10 change too.
bit:
    shlo_r_imm_64 r10, r9, 6
    shlo_l_imm_64 r10, r10, 3
    add_64 r8, r8, r10
    load_ind_u64 r12, r8, 0
    shlo_r_64 r12, r12, r9              ; by the index modulo 64
    and_imm r12, r12, 1
    return r5

; fn multiply(to r7, a r8, b r9)
;     product = [0; 8]
;     for i in 0..4 { product[i + 4] = add_row(a[i], b, product[i..]) }
;     excess = 38 * add_row(38, product[4..8], product[0..4])    // 38 = 2^256
;     field_add(to, product[0..4], excess)
multiply:
    store_u64 r9, factor
    move_reg r11, r8
    load_imm r1, 0
    store_u64 r1, product
    store_u64 r1, product+8
    store_u64 r1, product+16
    store_u64 r1, product+24
    load_imm r10, product
multiply_row:
    load_ind_u64 r8, r11, 0
    load_u64 r9, factor
    call r5, add_row
    store_ind_u64 r12, r10, 0
    add_imm_64 r10, r10, -24
    add_imm_64 r11, r11, 8
    branch_ne_imm r10, product+32, multiply_row
    load_imm r8, 38
    move_reg r9, r10
    load_imm r10, product
    call r5, add_row
    mul_64 r12, r12, r8
    store_u64 r12, excess
    load_imm r8, product
    load_imm r9, excess

; fn field_add(to r7, a r8, b r9)
;     carry = add(to, a, b)
;     while carry != 0 { carry = add(to, to, 38) }
field_add:
    call r5, add
add_carry:
    branch_eq_imm r12, 0, field_done
    move_reg r8, r7
    load_imm r9, power_of_2
    call r5, add
    jump add_carry
field_done:
    return r4

; fn field_subtract(to r7, a r8, b r9)
;     borrow = subtract(to, a, b)
;     while borrow != 0 { borrow = subtract(to, to, 38) }
field_subtract:
    call r5, subtract
subtract_borrow:
    branch_eq_imm r12, 0, field_done
    move_reg r8, r7
    load_imm r9, power_of_2
    call r5, subtract
    jump subtract_borrow

; fn canonical(number r7)
;     while subtract(lessened, number, p) does not borrow { number = lessened }
canonical:
    store_u64 r7, canonical_of
canonical_next:
    load_u64 r8, canonical_of
    load_imm r7, lessened
    load_imm r9, prime
    call r5, subtract
    load_u64 r7, canonical_of
    branch_ne_imm r12, 0, field_done
    load_imm r8, lessened
    call r5, copy32
    jump canonical_next

; fn power(to r7, base r8, exponent r9)
;     to = 1
;     for i in (0..255).rev() {
;         to = to * to
;         if bit(exponent, i) == 1 { to = to * base }
;     }
power:
    store_u64 r8, power_base
    store_u64 r9, power_exponent
    load_imm r8, one
    call r5, copy32
    load_imm r9, 255
power_next:
    add_imm_64 r9, r9, -1
    store_u64 r9, power_bit
    move_reg r8, r7
    move_reg r9, r7
    call r4, multiply
    load_u64 r8, power_exponent
    load_u64 r9, power_bit
    call r5, bit
    branch_eq_imm r12, 0, power_squared
    move_reg r8, r7
    load_u64 r9, power_base
    call r4, multiply
power_squared:
    load_u64 r9, power_bit
    branch_ne_imm r9, 0, power_next
    return r3
