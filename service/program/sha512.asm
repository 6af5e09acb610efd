; SHA-512 (FIPS 180-4) of a single block of 128 octets, which has the padding already.
;
; fn sha512(block r8) -> sha512_digest
;     words[..16] = block, as numbers whose highest octet comes first
;     for t in 16..80 { words[t] = words[t-16] + small0(words[t-15]) + words[t-7] + small1(words[t-2]) }
;     as[0..4] = [d, c, b, a], es[0..4] = [h, g, f, e] of the initial state
;     for t in 0..80 {
;         (d, c, b, a) = as[t..t+4], (h, g, f, e) = es[t..t+4]
;         first = h + big1(e) + (e & f ^ !e & g) + constants[t] + words[t]
;         es[t+4] = d + first
;         as[t+4] = first + big0(a) + majority(a, b, c)
;     }
;     digest = es[80..84] + es[0..4], as[80..84] + as[0..4]
;     So the state is not moved in a round: each of its words is computed once and read
;     from where it is. The digest has its words in the wrong order, and in each of them
;     the octets: read backwards, it is the digest of the standard.
; r4 is where it returns to. r1, r5 and r7 to r12 change.
.ro
sha512_initial:                         ; h, g, f, e, d, c, b, a
    .u64 0x5be0cd19137e2179, 0x1f83d9abfb41bd6b, 0x9b05688c2b3e6c1f, 0x510e527fade682d1
    .u64 0xa54ff53a5f1d36f1, 0x3c6ef372fe94f82b, 0xbb67ae8584caa73b, 0x6a09e667f3bcc908
sha512_constants:
    .u64 0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc
    .u64 0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118
    .u64 0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2
    .u64 0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694
    .u64 0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65
    .u64 0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5
    .u64 0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4
    .u64 0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70
    .u64 0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df
    .u64 0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b
    .u64 0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30
    .u64 0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8
    .u64 0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8
    .u64 0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3
    .u64 0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec
    .u64 0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b
    .u64 0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178
    .u64 0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b
    .u64 0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c
    .u64 0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817

.rw
sha512_words:      .space 640
sha512_e:          .space 672           ; all e that the rounds compute
sha512_a:          .space 672           ; all a
sha512_digest:     .space 64

.code
sha512:
    load_imm r1, 0
sha512_octet:
    load_ind_u8 r7, r8, 0
    xor_imm r9, r1, 7
    store_ind_u8 r7, r9, sha512_words
    add_imm_64 r8, r8, 1
    add_imm_64 r1, r1, 1
    branch_ne_imm r1, 128, sha512_octet

    load_imm r1, 0
sha512_word:
    load_ind_u64 r7, r1, sha512_words
    load_ind_u64 r8, r1, sha512_words+72
    add_64 r7, r7, r8
    load_ind_u64 r8, r1, sha512_words+8
    rot_r_64_imm r9, r8, 1
    rot_r_64_imm r10, r8, 8
    xor r9, r9, r10
    shlo_r_imm_64 r10, r8, 7
    xor r9, r9, r10
    add_64 r7, r7, r9
    load_ind_u64 r8, r1, sha512_words+112
    rot_r_64_imm r9, r8, 19
    rot_r_64_imm r10, r8, 61
    xor r9, r9, r10
    shlo_r_imm_64 r10, r8, 6
    xor r9, r9, r10
    add_64 r7, r7, r9
    store_ind_u64 r7, r1, sha512_words+128
    add_imm_64 r1, r1, 8
    branch_ne_imm r1, 512, sha512_word

    call r5, copy32, sha512_e, sha512_initial
    call r5, copy32, sha512_a, sha512_initial+32
    load_imm r1, 0
sha512_round:
    load_ind_u64 r7, r1, sha512_e       ; h
    load_ind_u64 r8, r1, sha512_words
    add_64 r7, r7, r8
    load_ind_u64 r8, r1, sha512_constants
    add_64 r7, r7, r8
    load_ind_u64 r8, r1, sha512_e+24    ; e
    rot_r_64_imm r9, r8, 14
    rot_r_64_imm r10, r8, 18
    xor r9, r9, r10
    rot_r_64_imm r10, r8, 41
    xor r9, r9, r10
    add_64 r7, r7, r9
    load_ind_u64 r9, r1, sha512_e+16    ; f
    load_ind_u64 r10, r1, sha512_e+8    ; g
    xor r9, r9, r10
    and r9, r9, r8
    xor r9, r9, r10                     ; f where e has a 1, else g
    add_64 r7, r7, r9
    load_ind_u64 r8, r1, sha512_a       ; d
    add_64 r8, r8, r7
    store_ind_u64 r8, r1, sha512_e+32
    load_ind_u64 r8, r1, sha512_a+24    ; a
    rot_r_64_imm r9, r8, 28
    rot_r_64_imm r10, r8, 34
    xor r9, r9, r10
    rot_r_64_imm r10, r8, 39
    xor r9, r9, r10
    add_64 r7, r7, r9
    load_ind_u64 r9, r1, sha512_a+16    ; b
    load_ind_u64 r10, r1, sha512_a+8    ; c
    or r11, r8, r9
    and r11, r11, r10
    and r8, r8, r9
    or r8, r8, r11                      ; what two of a, b and c have
    add_64 r7, r7, r8
    store_ind_u64 r7, r1, sha512_a+32
    add_imm_64 r1, r1, 8
    branch_ne_imm r1, 640, sha512_round

    load_imm r1, 0
sha512_sum:
    load_ind_u64 r7, r1, sha512_e
    load_ind_u64 r8, r1, sha512_e+640
    add_64 r7, r7, r8
    store_ind_u64 r7, r1, sha512_digest
    load_ind_u64 r7, r1, sha512_a
    load_ind_u64 r8, r1, sha512_a+640
    add_64 r7, r7, r8
    store_ind_u64 r7, r1, sha512_digest+32
    add_imm_64 r1, r1, 8
    branch_ne_imm r1, 32, sha512_sum
    return r4
