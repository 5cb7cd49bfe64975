(** Prints what each theorem assumes. *)
From Unisono Require Import Model Order Determined OrderCheck RaceCheck Collective ContentsCheck Checker Families
  Ring Tree Reductions Exchange Doubling Bruck Circulant Searches.

Check no_deadlock. Print Assumptions no_deadlock.
Check executions_end. Print Assumptions executions_end.
Check memory_determined. Print Assumptions memory_determined.
Check final_memory. Print Assumptions final_memory.
Check accepted_never_stuck. Print Assumptions accepted_never_stuck.
Check check_races_sound. Print Assumptions check_races_sound.
Check check_contents_sound. Print Assumptions check_contents_sound.
Check verdict_sound. Print Assumptions verdict_sound.
Check flow_correct. Print Assumptions flow_correct.
Check ring_allgather_correct. Print Assumptions ring_allgather_correct.
Check ring_reduce_scatter_correct. Print Assumptions ring_reduce_scatter_correct.
Check ring_allreduce_correct. Print Assumptions ring_allreduce_correct.
Check ring_allreduce_repeatable. Print Assumptions ring_allreduce_repeatable.
Check binomial_in_segments_correct. Print Assumptions binomial_in_segments_correct.
Check chain_in_segments_correct. Print Assumptions chain_in_segments_correct.
Check chain_reduce_in_segments_correct. Print Assumptions chain_reduce_in_segments_correct.
Check binomial_reduce_in_segments_correct. Print Assumptions binomial_reduce_in_segments_correct.
Check recursive_doubling_correct. Print Assumptions recursive_doubling_correct.
Check recursive_multiplying_correct. Print Assumptions recursive_multiplying_correct.
Check exchange_repeatable. Print Assumptions exchange_repeatable.
Check bruck_allgather_correct. Print Assumptions bruck_allgather_correct.
Check circulant_correct. Print Assumptions circulant_correct.
Check circulant_table_correct. Print Assumptions circulant_table_correct.
Check circulant_broadcast_correct. Print Assumptions circulant_broadcast_correct.
