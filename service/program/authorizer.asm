; The authorizer of a rollup's builder: it lets a work package pass that the builder
; has signed. The builder's public key is the authorizer's configuration, so that the
; hash of the authorizer stands for the key. The token is the signature, 64 octets.
; What is signed is "jamq authorizer" and the BLAKE2b-256 hash of the encoded package, in
; which 64 zeros are in the place of the token.
;
; r0 holds the address to halt at.

package_most  = 0x100000        ; octets of a package that the gas of JAM suffices for

package_of    = 7               ; kinds of fetch
config_of     = 8
token_of      = 9
context_of    = 10

.rw
; The block that the signature hashes, with the padding of SHA-512: a bit, zeros, and the
; length in bits.
hashed:
signature_r:  .space 32
public_key:   .space 32
              .text "jamq authorizer"
message_hash: .space 32
              .u8 0x80
              .space 14
              .u8 3, 0x78               ; 888 = 8 * (32 + 32 + 15 + 32)
signature_s:  .space 32
package:      .space package_most+128   ; zeros follow the package, for BLAKE2b

; fn is_authorized() -> [u8; 0] {
;     public_key = fetch(config_of)
;     assert(its length is 32)
;     (signature_r, signature_s) = fetch(token_of)
;     assert(its length is 64)
;     package = fetch(package_of)
;     assert(its length is at most package_most)
;     at = 4 + 32 + fetch(context_of).len() + 1    // after code host, code hash, length
;     package[at..at + 64] = 0
;     message_hash = blake2b(package)
;     verify()
;     return []
; }
.code
    call r5, fetched, public_key, 0, 32, config_of
    branch_ne_imm r7, 32, wrong
    call r5, fetched, signature_r, 0, 32, token_of
    branch_ne_imm r7, 64, wrong
    call r5, fetched, signature_s, 32, 32, token_of
    call r5, fetched, package, 0, package_most, package_of
    branch_ge_u_imm r7, package_most+1, wrong
    move_reg r6, r7
    call r5, fetched, package, 0, 0, context_of
    add_imm_64 r7, r7, package+37
    load_imm r8, zero
    call r5, copy32
    add_imm_64 r7, r7, 32
    call r5, copy32
    load_imm r7, package
    move_reg r8, r6
    call r5, blake2b
    move_reg r8, r7
    load_imm r7, message_hash
    call r5, copy32
    call r3, verify
    load_imm r8, 0                      ; safety: r7 is no address
    return r0

wrong:
    trap

; fn fetched(to r7, offset r8, length r9, kind r10) -> length of the value r7
fetched:
    ecalli fetch
    return r5
