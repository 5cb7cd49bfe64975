(** Prints the theorems and what they assume, all in one search: they rest on the same lemmas. *)
From Unisono Require Import Model Order Determined OrderCheck RaceCheck Collective ContentsCheck Checker Families
  Ring Tree Reductions Exchange Doubling Bruck Circulant Searches.

Definition theorems := (
  @no_deadlock, @executions_end, @memory_determined, @final_memory, @accepted_never_stuck, @check_races_sound,
  @check_contents_sound, @verdict_sound, @flow_correct, @ring_allgather_correct, @ring_reduce_scatter_correct,
  @ring_allreduce_correct, @ring_allreduce_repeatable, @binomial_in_segments_correct, @chain_in_segments_correct,
  @chain_reduce_in_segments_correct, @binomial_reduce_in_segments_correct, @recursive_doubling_correct,
  @recursive_multiplying_correct, @exchange_repeatable, @bruck_allgather_correct, @circulant_correct,
  @circulant_table_correct, @circulant_broadcast_correct).

Check theorems.
Print Assumptions theorems.
