(** The checker as a program in OCaml. Numbers become the 63-bit integers of OCaml: the reader refuses numbers of 2^32
    and more, and a schedule has fewer than 2^30 instructions, so no sum overflows. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt List PArith.
From Unisono Require Import Checker Ring Tree Reductions Exchange Doubling Bruck Searches.

Extract Inlined Constant Pos.of_succ_nat => "Stdlib.succ".
(* The function of the standard library needs stack for each element of a list. *)
Extract Inlined Constant List.map => "(fun f l -> Stdlib.List.rev (Stdlib.List.rev_map f l))".
Extract Inlined Constant Coq.Arith.PeanoNat.Nat.div => "(fun a b -> if b = 0 then 0 else a / b)".
Extract Inlined Constant Coq.Arith.PeanoNat.Nat.modulo => "(fun a b -> if b = 0 then a else a mod b)".
Extract Inlined Constant Coq.Arith.PeanoNat.Nat.max => "Stdlib.max".
Extract Inlined Constant Coq.Arith.PeanoNat.Nat.min => "Stdlib.min".
Extraction "build/checker.ml" Checker.verdict Ring.ring_allgather Ring.ring_reduce_scatter Ring.ring_allreduce
  Tree.binomial_in_segments Tree.chain_in_segments
  Reductions.top_of Reductions.chain_reduce_in_segments Reductions.chain_scratch
  Reductions.binomial_reduce_in_segments Reductions.binomial_scratch
  Doubling.doubling_pairs Exchange.exchange_streams Doubling.recursive_doubling Doubling.recursive_multiplying
  Bruck.rounds Bruck.bruck_allgather Bruck.bruck_scratch
  Searches.circulant_broadcast Searches.circulant_streams Searches.table_right.
