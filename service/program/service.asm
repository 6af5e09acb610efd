; The service of a rollup. See docs/service.md for its storage and its rules.
;
; r0 holds the address to halt at, from the first instruction to the last. r5 is
; where a routine returns to. Host calls take r7 to r12, and change r7 only. Routines
; take and change some of r7 to r12; find changes r4, too, and blake2b r1 to r4 and r6.
; Other registers keep their values, and belong to the routine above which they are
; named. A test leaves out each line and requires a difference, except lines with
; "safety".

header_size  = 136              ; number 8, block hash, pre-root, post-root, transactions root
update_size  = 200              ; header, package, hash of the commitment
ahead        = 64               ; how far in front of its turn an update may come
waiting_size = 800              ; of the four updates that may wait for one number
history      = 4096             ; how many blocks are kept

none         = -1               ; results of host calls
full         = -5
own          = -1               ; the service itself
payload_of   = 13               ; kinds of fetch
input_of     = 15

.ro
authorizer_key: .text "authorizer"
count_key:      .text "n"

.rw
; Keys of the storage that have a part which varies.
commitment_key:    .text "commitment"
commitment_number: .space 8
entry_key:         .text "i"
entry_index:       .space 8
waiting_key:       .text "p"            ; the updates that wait for the turn of a number
waiting_number:    .space 8             ; find leaves its number here

; The update that is handled. In front of it is its package, so that package and header
; are one range: an entry. After it are updates that wait for the same number, so that it
; and all of them except the last are one range, too. In refine, zeros follow it, for
; BLAKE2b.
entry:                                  ; package, header
entry_package:     .space 32
update:                                 ; header, package: a commitment
update_number:     .space 40            ; number, block hash
update_pre_root:   .space 32
update_post_root:  .space 64            ; post-root, transactions root
update_package:    .space 32
update_hash:       .space 32
waiting:           .space waiting_size

next_root:         .space 32            ; the state root after the last block
wanted_root:       .space 32
find_return:       .space 8
count:             .space 8             ; number of the last block
slot:              .space 8
authorizer:        .space 32
yield:             .space 32
pruned:            .space 32            ; package of a block that is forgotten

; An input of accumulate, as far as it is read.
input_size = 192
input:             .space 1             ; 0: an operand; 1: a transfer
input_package:     .space 64            ; package, segment root
input_authorizer:  .space 64            ; authorizer, payload hash
input_gas:         .space 63            ; gas limit, result

.code
    jump refine                         ; entry point 0
    jump accumulate                     ; entry point 5

; fn refine(arguments) -> [u8] {
;     update.package = last 32 octets of arguments
;     (core, item) = naturals of arguments
;     update.header = fetch(payload_of, item)[..header_size]
;     assert(update.number > 0)         // 0 if there is no payload
;     update.hash = blake2b(update.header, update.package)
;     return update
; }
;
; r4: end of the arguments, r6: their beginning
refine:
    add_64 r4, r7, r8
    move_reg r6, r7
    load_imm r7, update_package
    add_imm_64 r8, r4, -32
    call r5, copy32
    move_reg r7, r6
    call r5, natural                    ; core
    call r5, natural                    ; item
    move_reg r11, r8
    load_imm r7, update
    load_imm r8, 0
    load_imm r9, header_size
    load_imm r10, payload_of
    ecalli fetch
    branch_lt_u_imm r7, header_size, wrong
    load_u64 r7, update_number
    branch_eq_imm r7, 0, wrong
    call r5, blake2b, update, update_hash-update
    move_reg r8, r7
    call r5, copy32, update_hash
    load_imm r7, update
    load_imm r8, update_size
    return r0

wrong:
    trap                                ; safety: the next routine panics here, too

; fn accumulate(arguments) -> Option<[u8; 32]> {
;     (slot, service, inputs) = naturals of arguments
;     authorizer = read("authorizer")
;     assert(its length is 32)          // installed
;     count = read("n").unwrap_or(0)
;     assert(its length is 8)           // if there is one
;     commitment = read("commitment" ++ count)
;     assert(its length is 168)
;     next_root = commitment.post_root
;     for i in 0..inputs {
;         if let Some(update) = updateIn(i) { handle(update) }
;     }
;     if nothing was applied { return None }
;     write("n", count)
;     return Some(yield)
; }
;
; r1: index of the input, r2: number of inputs, r3: count, r4: a result that is used soon,
; r6: length of the output. r6 is 0 at first, since a PVM begins with values in r0, r1, r7
; and r8 only.
accumulate:
    call r5, natural
    store_u32 r8, slot
    call r5, natural                    ; service
    call r5, natural
    move_reg r2, r8

    call r5, load, own, authorizer_key, count_key-authorizer_key, authorizer, 0, 32
    branch_ne_imm r7, 32, wrong         ; also if there is none

    call r5, load, own, count_key, 1, count, 0, 8   ; stays 0 if there is none
    branch_eq_imm r7, none, started
    branch_ne_imm r7, 8, wrong
started:
    load_u64 r3, count

    store_u64 r3, commitment_number
    call r5, load, own, commitment_key, entry_key-commitment_key, next_root, update_post_root-update, 32
    branch_ne_imm r7, update_hash-update, wrong

    load_imm r1, -1

; fn updateIn(i) -> Option<Update> {
;     operand = fetch(input_of, i)
;     if operand is a transfer || operand.authorizer != authorizer { return None }
;     if operand.result is an error || its length != update_size { return None }
;     update = operand.result
;     if update.package != operand.package { return None }
;     return update
; }
next_input:
    add_imm_64 r1, r1, 1
    branch_eq r1, r2, finish
    call r5, fetch_input, input, 0, input_size
    load_imm r7, input
    load_ind_u8 r8, r7, 0               ; safety: no transfer has the hash of a
    branch_ne_imm r8, 0, next_input     ; safety: package and of the authorizer
    call r5, compare32, input_authorizer, authorizer
    branch_ne_imm r7, 0, next_input
    call r5, natural, input_gas
    load_ind_u8 r8, r7, 0
    branch_ne_imm r8, 0, next_input     ; an error
    add_imm_64 r7, r7, 1
    call r5, natural
    branch_ne_imm r8, update_size, next_input
    load_imm r8, input
    sub_64 r8, r7, r8                   ; where the output begins in the input
    load_imm r7, update
    load_imm r9, update_size
    call r5, fetch_input
    call r5, compare32, update_package, input_package
    branch_ne_imm r7, 0, next_input

; fn handle(update) {
;     distance = update.number - (count + 1)          // wraps if the number is lower
;     if distance >= ahead { return }
;     if distance > 0 {
;         if find(number, update.pre_root).is_none() {
;             write("p" ++ waiting_number, (update ++ waiting)[..waiting_size])
;         }
;         return
;     }
;     if update.pre_root != next_root { return }
;     loop {
;         apply(update)
;         found = find(count + 1, next_root)
;         write("p" ++ waiting_number, [])  // its turn is now
;         update = found?
;     }
; }
    load_u64 r4, update_number
    sub_64 r7, r4, r3
    add_imm_64 r7, r7, -1
    branch_ge_u_imm r7, ahead, next_input
    branch_eq_imm r7, 0, in_turn
    load_imm r8, update_pre_root
    call r5, find
    branch_eq_imm r7, 0, next_input     ; another one came first
    load_imm r8, update
    sub_64 r10, r12, r8                 ; to the end of those that wait
    branch_lt_u_imm r10, waiting_size+1, kept
    load_imm r10, waiting_size          ; without the last, which came first
kept:
    call r5, store, waiting_key, entry-waiting_key, update
    jump next_input
in_turn:
    call r5, compare32, update_pre_root, next_root
    branch_ne_imm r7, 0, next_input

; fn apply(update) {
;     count += 1
;     next_root = update.post_root
;     yield = update.hash
;     prune(count - history)            // nothing, if that is less than 0
;     write("commitment" ++ count, update[..168])
;     write(update.package, slot)
;     write("i" ++ (count - 1), update.package ++ update.header)
; }
apply:
    add_imm_64 r3, r3, 1
    call r5, copy32, next_root, update_post_root
    call r5, copy32, yield, update_hash
    load_imm r6, 32
    call r5, copy32, entry_package, update_package

; fn prune(number) {
;     commitment = read("commitment" ++ number)?    // return, unless it has 168 octets
;     write("commitment" ++ number, [])
;     write(commitment.package, [])
;     write("i" ++ (number - 1), [])
; }
    add_imm_64 r4, r3, -history
    store_u64 r4, commitment_number
    add_imm_64 r4, r4, -1
    store_u64 r4, entry_index
    call r5, load, own, commitment_key, entry_key-commitment_key, pruned, update_package-update, 32
    branch_ne_imm r7, update_hash-update, remember
    call r5, delete, commitment_key, entry_key-commitment_key
    call r5, delete, pruned, 32
    call r5, delete, entry_key, waiting_key-entry_key

remember:
    store_u64 r3, commitment_number
    call r5, store, commitment_key, entry_key-commitment_key, update, update_hash-update
    call r5, store, update_package, 32, slot, 4
    add_imm_64 r4, r3, -1
    store_u64 r4, entry_index
    call r5, store, entry_key, waiting_key-entry_key, entry, update_package-entry

    add_imm_64 r4, r3, 1
    load_imm r8, next_root
    call r5, find
    move_reg r4, r7
    load_imm r7, own
    load_imm r8, waiting_key
    load_imm r9, entry-waiting_key
    load_imm r10, update
    load_imm r11, waiting
    sub_64 r11, r12, r11
    load_imm r12, update_size           ; safety: the next ones may be read, too
    call r5, load                       ; not read later, if none was found
    call r5, delete, waiting_key, entry-waiting_key
    branch_eq_imm r4, 0, apply
    jump next_input

finish:
    branch_eq_imm r6, 0, done
    store_u64 r3, count
    call r5, store, count_key, 1, count, 8
done:
    load_imm r7, yield
    move_reg r8, r6
    return r0

; fn find(number r4, root r8) -> (r7, r12) {
;     waiting_number = number
;     waiting = read("p" ++ waiting_number).unwrap_or([])
;     if waiting.len() > waiting_size { waiting = [] }
;     for update in whole updates of waiting {
;         if update.pre_root == root { return (0, address of update) }
;     }
;     return (anything except 0, address after the last whole update)
; }
;     r4 and r8 to r11 change. r12 points into the copy at the label waiting.
find:
    store_u64 r5, find_return
    store_u64 r4, waiting_number
    call r5, copy32, wanted_root
    call r5, load, own, waiting_key, entry-waiting_key, waiting, 0, waiting_size
    move_reg r4, r7                     ; octets that are left
    load_imm r12, waiting
    branch_ge_u_imm r4, waiting_size+1, find_end    ; also if there are none
    load_imm r7, none                   ; until one is found: the list may be empty
find_next:
    branch_lt_u_imm r4, update_size, find_end
    add_imm_64 r7, r12, update_pre_root-update
    load_imm r8, wanted_root
    call r5, compare32
    branch_eq_imm r7, 0, find_end
    add_imm_64 r12, r12, update_size
    add_imm_64 r4, r4, -update_size
    jump find_next
find_end:
    load_u64 r5, find_return
    return r5

; fn fetch_input(to r7, offset r8, length r9) of the input with index r1
fetch_input:
    load_imm r10, input_of
    move_reg r11, r1
    ecalli fetch
    return r5

; fn load(service r7, key r8, its length r9, to r10, offset r11, length r12)
;     returns the length of the value in r7
load:
    ecalli read
    return r5

; fn delete(key r7, its length r8)
delete:
    load_imm r10, 0

; fn store(key r7, its length r8, value r9, its length r10)
;     The balance can be too low. Then the whole call must be undone.
store:
    ecalli write
    branch_eq_imm r7, full, wrong
    return r5
