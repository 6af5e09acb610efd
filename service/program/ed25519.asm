; Ed25519 (RFC 8032), for a message so short that SHA-512 hashes it in one block. The
; signatures that are right are those of Go's crypto/ed25519: s must be below the order,
; the equation has no cofactor, R is compared as octets, and the key may have a y of p or
; more.
;
; A point of the curve -x^2 + y^2 = 1 + d x^2 y^2 is four numbers of the field, X, Y, Z
; and T, for x = X/Z, y = Y/Z and x y = T/Z.

.ro
order:                                  ; of the base point
    .u64 0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 0x1000000000000000
curve_d:
    .u64 0x75eb4dca135978a3, 0x00700a4d4141d8ab, 0x8cc740797779e898, 0x52036cee2b6ffe73
twice_d:
    .u64 0xebd69b9426b2f159, 0x00e0149a8283b156, 0x198e80f2eef3d130, 0x2406d9dc56dffce7
root_of_minus_1:
    .u64 0xc4ee1b274a0ea0b0, 0x2f431806ad2fe478, 0x2b4d00993dfbd7a7, 0x2b8324804fc1df0b
root_exponent:                          ; (p + 3) / 8
    .u64 -2, -1, -1, 0x0fffffffffffffff
base_point:
    .u64 0xc9562d608f25d51a, 0x692cc7609525a7b2, 0xc0a4e231fdd6dc5c, 0x216936d3cd6e53fe
    .u64 0x6666666666666658, 0x6666666666666666, 0x6666666666666666, 0x6666666666666666
    .u64 1, 0, 0, 0
    .u64 0x6dde8ab3a5b7dda3, 0x20f09f80775152f5, 0x66ea4e8e64abe37d, 0x67875f0fd78b7665
neutral_point:                          ; adding it changes nothing
    .u64 0, 0, 0, 0,  1, 0, 0, 0,  1, 0, 0, 0,  0, 0, 0, 0

.rw
challenge:         .space 32            ; the hash, modulo the order
verify_return:     .space 8
ladder_bit:        .space 8

; The points of which each step of the ladder adds one, four numbers each.
points:            .space 128           ; of index 0: none
points_base:       .space 128
minus_key:
minus_key_x:       .space 32
minus_key_y:       .space 32
minus_key_z:       .space 32
minus_key_t:       .space 32
points_both:       .space 128           ; base point minus key

sum:
sum_x:             .space 32
sum_y:             .space 32
sum_z:             .space 32
sum_t:             .space 32
term:
term_x:            .space 32
term_y:            .space 32
term_z:            .space 32
term_t:            .space 32

a:                 .space 32            ; numbers of the formulas
b:                 .space 32
c:                 .space 32
d:                 .space 32
e:                 .space 32

; fn verify()                           // panics if the signature is wrong
;     assert(signature_s < order)
;     challenge = 0
;     for bit in the bits of sha512(hashed), the highest first {
;         challenge = 2 * challenge + bit
;         if subtract(a, challenge, order) does not borrow { challenge = a }
;     }
; r3 is where it returns to. All registers except r0 change.
;
; r3: address of an octet of the digest, r4: bit in it
.code
verify:
    store_u64 r3, verify_return
    call r5, subtract, a, signature_s, order
    branch_eq_imm r12, 0, wrong
    load_imm r8, hashed
    call r4, sha512
    load_imm r3, sha512_digest
reduce_octet:
    load_imm r4, 7
reduce_bit:
    call r5, add, challenge, challenge, challenge
    load_ind_u8 r1, r3, 0
    shlo_r_64 r1, r1, r4
    and_imm r1, r1, 1
    load_u64 r2, challenge
    or r2, r2, r1
    store_u64 r2, challenge
    call r5, subtract, a, challenge, order
    branch_ne_imm r12, 0, reduced
    call r5, copy32, challenge, a
reduced:
    add_imm_64 r4, r4, -1
    branch_ne_imm r4, -1, reduce_bit
    add_imm_64 r3, r3, 1
    branch_ne_imm r3, sha512_digest+64, reduce_octet

;     (y, sign) = public_key            // sign is its highest bit
;     square = (y^2 - 1) / (d y^2 + 1)
;     x = square^((p + 3) / 8)          // a root of square or of -square, if there is one
;     if !is_root(x) { x *= root_of_minus_1; assert(is_root(x)) }
;     if canonical(x) & 1 == sign { x = -x }    // with the other sign: of minus the key
;     minus_key = (x, y, 1, x y)
    call r5, copy32, minus_key_y, public_key
    load_u64 r1, minus_key_y+24
    shlo_l_imm_64 r1, r1, 1
    shlo_r_imm_64 r1, r1, 1
    store_u64 r1, minus_key_y+24
    call r4, multiply, a, minus_key_y, minus_key_y
    call r4, multiply, b, a, curve_d
    call r4, field_add, b, b, one
    call r3, power, c, b, prime_less_2  ; 1/b
    call r4, field_subtract, a, a, one
    call r4, multiply, a, a, c
    call r3, power, minus_key_x, a, root_exponent
    call r3, is_root
    branch_eq_imm r7, 0, root_found
    call r4, multiply, minus_key_x, minus_key_x, root_of_minus_1
    call r3, is_root
    branch_ne_imm r7, 0, wrong          ; safety: R would be that of no point
root_found:
    call r4, canonical, minus_key_x
    load_u64 r1, minus_key_x
    and_imm r1, r1, 1
    load_u64 r2, public_key+24
    shlo_r_imm_64 r2, r2, 63
    branch_ne r1, r2, sign_found
    call r4, field_subtract, minus_key_x, zero, minus_key_x
sign_found:
    call r5, copy32, minus_key_z, one
    call r4, multiply, minus_key_t, minus_key_x, minus_key_y

;     points = [none, base, minus_key, base + minus_key]
;     sum = neutral
;     for i in (0..253).rev() {
;         sum = sum + sum
;         which = bit(signature_s, i) + 2 * bit(challenge, i)
;         if which > 0 { sum = sum + points[which] }
;     }                                 // s * base - challenge * key
    call r4, copy128, points_base, base_point
    call r4, copy128, sum, base_point
    call r3, add_point, minus_key
    call r4, copy128, points_both, sum
    call r4, copy128, sum, neutral_point
    load_imm r9, 253
ladder:
    add_imm_64 r9, r9, -1
    store_u64 r9, ladder_bit
    call r3, add_point, sum
    load_imm r8, signature_s
    load_u64 r9, ladder_bit
    call r5, bit
    move_reg r3, r12
    load_imm r8, challenge
    call r5, bit
    add_64 r3, r3, r12
    add_64 r3, r3, r12
    branch_eq_imm r3, 0, ladder_next
    shlo_l_imm_64 r3, r3, 7
    add_imm_64 r7, r3, points
    call r3, add_point
ladder_next:
    load_u64 r9, ladder_bit
    branch_ne_imm r9, 0, ladder

;     (x, y) = (canonical(sum.x / sum.z), canonical(sum.y / sum.z))
;     y |= (x & 1) << 255
;     assert(y == signature_r)
    call r3, power, a, sum_z, prime_less_2
    call r4, multiply, b, sum_x, a
    call r4, canonical, b
    call r4, multiply, c, sum_y, a
    call r4, canonical, c
    load_u64 r1, b
    shlo_l_imm_64 r1, r1, 63
    load_u64 r2, c+24
    or r2, r2, r1
    store_u64 r2, c+24
    call r5, compare32, c, signature_r
    branch_ne_imm r7, 0, wrong
    load_u64 r3, verify_return
    return r3                           ; safety: the next routine returns, too

; fn is_root() -> 0 in r7 if minus_key_x^2 is a
;     b changes.
is_root:
    call r4, multiply, b, minus_key_x, minus_key_x
    call r4, field_subtract, b, b, a
    call r4, canonical, b
    call r5, compare32, b, zero
    return r3

; fn add_point(point r7)
;     term = point                      // may be the sum itself
;     a = (sum.y - sum.x) * (term.y - term.x), b = (sum.y + sum.x) * (term.y + term.x)
;     c = 2 d * sum.t * term.t, d = 2 * sum.z * term.z
;     (e, f, g, h) = (b - a, d - c, d + c, b + a)
;     sum = (e f, g h, f g, e h)
; From RFC 8032. It holds for any two points of the curve.
add_point:
    move_reg r8, r7
    load_imm r7, term
    call r4, copy128
    call r4, field_subtract, a, sum_y, sum_x
    call r4, field_subtract, c, term_y, term_x
    call r4, multiply, a, a, c
    call r4, field_add, b, sum_y, sum_x
    call r4, field_add, c, term_y, term_x
    call r4, multiply, b, b, c
    call r4, multiply, c, sum_t, term_t
    call r4, multiply, c, c, twice_d
    call r4, multiply, d, sum_z, term_z
    call r4, field_add, d, d, d
    call r4, field_subtract, e, b, a
    call r4, field_add, b, b, a         ; h
    call r4, field_subtract, a, d, c    ; f
    call r4, field_add, d, d, c         ; g
    call r4, multiply, sum_x, e, a
    call r4, multiply, sum_y, d, b
    call r4, multiply, sum_z, a, d
    call r4, multiply, sum_t, e, b
    return r3

; fn copy128(to r7, from r8)
;     r9 and r10 change.
copy128:
    add_imm_64 r10, r7, 128
copy128_next:
    call r5, copy32
    add_imm_64 r7, r7, 32
    add_imm_64 r8, r8, 32
    branch_ne r7, r10, copy128_next
    return r4
