; Routines that know nothing of the service. r5 is where they return to.

; fn copy32(to r7, from r8)
;     r9 changes.
.code
copy32:
    load_ind_u64 r9, r8, 0
    store_ind_u64 r9, r7, 0
    load_ind_u64 r9, r8, 8
    store_ind_u64 r9, r7, 8
    load_ind_u64 r9, r8, 16
    store_ind_u64 r9, r7, 16
    load_ind_u64 r9, r8, 24
    store_ind_u64 r9, r7, 24
    return r5                           ; safety: the next routine returns, too

; fn compare32(a r7, b r8) -> 0 in r7 if 32 octets are equal
;     r9 to r11 change.
compare32:
    load_imm r9, 32                     ; octets that are left
compare_next:
    load_ind_u64 r10, r7, 0
    load_ind_u64 r11, r8, 0
    branch_ne r10, r11, compared
    add_imm_64 r7, r7, 8
    add_imm_64 r8, r8, 8
    add_imm_64 r9, r9, -8
    branch_ne_imm r9, 0, compare_next
compared:
    move_reg r7, r9
    return r5

; fn natural(from r7) -> (value r8, r7 after it) {
;     first = *from++                   // as many leading ones as octets follow
;     for (value = shift = 0, bit = 128; first & bit != 0; bit >>= 1) {
;         first ^= bit
;         value |= *from++ << shift
;         shift += 8
;     }
;     return value | first << shift
; }
;     r9 to r12 change.
natural:
    load_ind_u8 r9, r7, 0
    add_imm_64 r7, r7, 1
    load_imm r8, 0
    load_imm r10, 0
    load_imm r11, 128
natural_next:
    and r12, r9, r11
    branch_eq_imm r12, 0, natural_last
    xor r9, r9, r11
    shlo_r_imm_64 r11, r11, 1
    load_ind_u8 r12, r7, 0
    add_imm_64 r7, r7, 1
    shlo_l_64 r12, r12, r10
    or r8, r8, r12
    add_imm_64 r10, r10, 8
    jump natural_next
natural_last:
    shlo_l_64 r9, r9, r10               ; after 8 octets, first is 0
    or r8, r8, r9
    return r5

; BLAKE2b-256 (RFC 7693).
.ro
blake2b_iv:
    .u64 0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1
    .u64 0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179
; Which words of the state the eight mixes of a round change, in octets.
blake2b_mixes:
    .u8 0, 32, 64, 96, 8, 40, 72, 104, 16, 48, 80, 112, 24, 56, 88, 120
    .u8 0, 40, 80, 120, 8, 48, 88, 96, 16, 56, 64, 104, 24, 32, 72, 112
blake2b_mixes_end:
; Which words of the block the mixes of the twelve rounds add, two each.
blake2b_words:
    .u8 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    .u8 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3
    .u8 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4
    .u8 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8
    .u8 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13
    .u8 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9
    .u8 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11
    .u8 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10
    .u8 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5
    .u8 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0
    .u8 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    .u8 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3
blake2b_words_end:

.rw
blake2b_return: .space 8
blake2b_left:   .space 8                ; octets after the present block
blake2b_done:   .space 8                ; octets up to the end of the present block
blake2b_hash:   .space 64
blake2b_state:  .space 128              ; v[16]

; fn blake2b(message r7, length r8) -> address of the hash r7 {
;     hash = iv; hash[0] ^= 0x01010020
;     left = length, done = 0
;     loop {
;         last = left <= 128
;         done += last ? left : 128
;         state = hash ++ iv; state[12] ^= done; if last { state[14] ^= !0 }
;         for round in 0..12 { for mix in 0..8 { ... } }
;         hash ^= state[..8] ^ state[8..]
;         if last { return hash }
;         message += 128, left -= 128
;     }
; }
;     The message has at least one octet. Zeros follow it up to the end of its last
;     block of 128 octets. r1 to r4, r6 and r8 to r12 change. r12 is the block.
.code
blake2b:
    store_u64 r5, blake2b_return
    move_reg r12, r7
    store_u64 r8, blake2b_left
    load_imm r1, 0
    store_u64 r1, blake2b_done          ; safety: the program hashes once
blake2b_begin:
    load_ind_u64 r7, r1, blake2b_iv
    store_ind_u64 r7, r1, blake2b_hash
    add_imm_64 r1, r1, 8
    branch_ne_imm r1, 64, blake2b_begin
    load_u64 r7, blake2b_hash
    xor_imm r7, r7, 0x01010020          ; no key, 32 octets of hash
    store_u64 r7, blake2b_hash

blake2b_block:
    load_imm r1, 0
blake2b_copy:
    load_ind_u64 r7, r1, blake2b_hash
    store_ind_u64 r7, r1, blake2b_state
    load_ind_u64 r7, r1, blake2b_iv
    store_ind_u64 r7, r1, blake2b_state+64
    add_imm_64 r1, r1, 8
    branch_ne_imm r1, 64, blake2b_copy
    load_u64 r8, blake2b_left
    branch_ge_u_imm r8, 129, blake2b_full
    load_u64 r7, blake2b_state+112
    xor_imm r7, r7, -1
    store_u64 r7, blake2b_state+112
    jump blake2b_count
blake2b_full:
    load_imm r8, 128
blake2b_count:
    load_u64 r7, blake2b_done
    add_64 r7, r7, r8
    store_u64 r7, blake2b_done
    load_u64 r9, blake2b_state+96
    xor r9, r9, r7
    store_u64 r9, blake2b_state+96

; One mix: r3 to r6 are the places of a, b, c and d, which r7 to r10 hold. r1 and r2
; go through blake2b_mixes and blake2b_words.
    load_imm r2, blake2b_words
blake2b_round:
    load_imm r1, blake2b_mixes
blake2b_mix:
    load_ind_u8 r3, r1, 0
    load_ind_u8 r4, r1, 1
    load_ind_u8 r5, r1, 2
    load_ind_u8 r6, r1, 3
    load_ind_u64 r7, r3, blake2b_state
    load_ind_u64 r8, r4, blake2b_state
    load_ind_u64 r9, r5, blake2b_state
    load_ind_u64 r10, r6, blake2b_state
    load_ind_u8 r11, r2, 0
    shlo_l_imm_64 r11, r11, 3
    add_64 r11, r11, r12
    load_ind_u64 r11, r11, 0
    add_64 r7, r7, r8                   ; a += b + first word
    add_64 r7, r7, r11
    xor r10, r10, r7                    ; d = (d ^ a) >>> 32
    rot_r_64_imm r10, r10, 32
    add_64 r9, r9, r10                  ; c += d
    xor r8, r8, r9                      ; b = (b ^ c) >>> 24
    rot_r_64_imm r8, r8, 24
    load_ind_u8 r11, r2, 1
    shlo_l_imm_64 r11, r11, 3
    add_64 r11, r11, r12
    load_ind_u64 r11, r11, 0
    add_64 r7, r7, r8                   ; a += b + second word
    add_64 r7, r7, r11
    xor r10, r10, r7                    ; d = (d ^ a) >>> 16
    rot_r_64_imm r10, r10, 16
    add_64 r9, r9, r10                  ; c += d
    xor r8, r8, r9                      ; b = (b ^ c) >>> 63
    rot_r_64_imm r8, r8, 63
    store_ind_u64 r7, r3, blake2b_state
    store_ind_u64 r8, r4, blake2b_state
    store_ind_u64 r9, r5, blake2b_state
    store_ind_u64 r10, r6, blake2b_state
    add_imm_64 r2, r2, 2
    add_imm_64 r1, r1, 4
    branch_ne_imm r1, blake2b_mixes_end, blake2b_mix
    branch_ne_imm r2, blake2b_words_end, blake2b_round

    load_imm r1, 0
blake2b_fold:
    load_ind_u64 r7, r1, blake2b_hash
    load_ind_u64 r8, r1, blake2b_state
    xor r7, r7, r8
    load_ind_u64 r8, r1, blake2b_state+64
    xor r7, r7, r8
    store_ind_u64 r7, r1, blake2b_hash
    add_imm_64 r1, r1, 8
    branch_ne_imm r1, 64, blake2b_fold

    load_u64 r8, blake2b_left
    add_imm_64 r7, r8, -128
    store_u64 r7, blake2b_left
    add_imm_64 r12, r12, 128
    branch_ge_u_imm r8, 129, blake2b_block
    load_imm r7, blake2b_hash
    load_u64 r5, blake2b_return
    return r5
