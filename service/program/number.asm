; Numbers of 256 bits, and the field of Curve25519 (RFC 7748): numbers modulo
; p = 2^255 - 19. A number is 32 octets, the lowest first. Numbers of the field are any
; of 256 bits, and equal if they differ by p or 2p; "canonical" makes them comparable.
;
; r5 is where "add", "subtract" and "canonical" return to, and r4 is it for the others.
; All change r1, r2, r6 and r8 to r12. r7, where the result is, stays.

.ro
zero:       .u64 0, 0, 0, 0
one:        .u64 1, 0, 0, 0
wrapped:    .u64 38, 0, 0, 0            ; 2^256 modulo p
prime:      .u64 -19, -1, -1, 0x7fffffffffffffff

.rw
product:    .space 64
excess:     .space 32                   ; a number with one limb
attempt:    .space 32

; fn add(to r7, a r8, b r9) -> carry r12
;     for i in 0..4 { (to[i], carry) = a[i] + b[i] + carry }
; "to" may be "a" or "b".
.code
add:
    load_imm r12, 0
    add_imm_64 r10, r8, 32
add_limb:
    load_ind_u64 r1, r8, 0
    load_ind_u64 r2, r9, 0
    add_64 r11, r1, r12
    set_lt_u r12, r11, r12
    add_64 r11, r11, r2
    set_lt_u r2, r11, r2
    add_64 r12, r12, r2
    store_ind_u64 r11, r7, 0
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
    sub_64 r6, r11, r2
    set_lt_u r2, r11, r2
    add_64 r12, r12, r2
    store_ind_u64 r6, r7, 0
    add_imm_64 r7, r7, 8
    add_imm_64 r8, r8, 8
    add_imm_64 r9, r9, 8
    branch_ne r8, r10, subtract_limb
    add_imm_64 r7, r7, -32
    return r5

; fn field_add(to r7, a r8, b r9)
;     carry = add(to, a, b)
;     while carry > 0 { carry = add(to, to, 38) }
field_add:
    call r5, add
field_carry:
    branch_eq_imm r12, 0, field_done
    move_reg r8, r7
    load_imm r9, wrapped
    call r5, add
    jump field_carry
field_done:
    return r4

; fn field_subtract(to r7, a r8, b r9)
;     borrow = subtract(to, a, b)
;     while borrow > 0 { borrow = subtract(to, to, 38) }
field_subtract:
    call r5, subtract
field_borrow:
    branch_eq_imm r12, 0, field_done
    move_reg r8, r7
    load_imm r9, wrapped
    call r5, subtract
    jump field_borrow

; fn multiply(to r7, a r8, b r9)
;     product = [0; 8]
;     for i in 0..4 {
;         carry = 0
;         for j in 0..4 { (product[i + j], carry) = a[i] * b[j] + product[i + j] + carry }
;         product[i + 4] = carry
;     }
;     for i in 0..4 { (to[i], carry) = product[i + 4] * 38 + product[i] + carry }
;     excess = carry * 38
;     field_add(to, to, excess)
; A product and two more limbs fit into 128 bits: (2^64 - 1)^2 + 2 (2^64 - 1) < 2^128.
multiply:
    store_u64 r7, multiply_to
    add_imm_64 r2, r9, 32
    load_imm r10, product
multiply_clear:
    ...
