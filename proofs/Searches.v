(** The tables of circulant broadcasts, as crates/algorithms/src/ranks/circulant.rs computes them: the distances, and the
    search of Träff, "Optimal Broadcast Schedules in Logarithmic Time", for the blocks of a rank. That each table passes
    [table_ok] is not proved for every number of ranks: Coq computes it for each number up to [most_ranks]. *)
From Unisono Require Import Families Circulant.

(** Halves, rounded up, until 1. *)
Fixpoint halved (fuel s : nat) (larger : list nat) : list nat :=
  match fuel with
  | 0 => larger
  | S f => if s <=? 1 then s :: larger else halved f ((s + 1) / 2) (s :: larger)
  end.
(** The distances, from 1 to the number of ranks. *)
Definition skips (P : nat) : list nat := halved P P [].

Fixpoint replaced (l : list nat) (i x : nat) : list nat :=
  match l, i with [], _ => [] | _ :: r, 0 => x :: r | y :: r, S j => y :: replaced r j x end.

(** The exponents of distances that remain, each shifted by one and linked to the next smaller and the next larger one;
    the exponents that were found, the last one first; the rank whose block was taken last. *)
Record search := { smaller : list nat; larger : list nat; found : list nat; taken_at : nat }.

(** Removes an exponent from those that remain. *)
Definition without (s : search) (e : nat) : search :=
  let low := nth (S e) (smaller s) 0 in let high := nth (S e) (larger s) 0 in
  {| smaller := if high <? length (smaller s) then replaced (smaller s) high low else smaller s;
     larger := replaced (larger s) low high; found := found s; taken_at := taken_at s |}.

Section Search.
Variable distances : list nat.
(** The rank plus the number of ranks. *)
Variable rank : nat.
Definition skip (k : nat) : nat := nth k distances 0.
Definition exponents : nat := length distances - 1.

(** Takes the blocks of ranks after [place], over distances up to the one before [at_]. *)
Fixpoint find_from (fuel place at_ : nat) (s : search) : search :=
  match fuel with
  | 0 => s
  | S f =>
    let k := length (found s) in
    if (at_ =? 0) || (exponents <=? k) then s
    else
      let to := place + skip (at_ - 1) in
      if (to <=? rank - skip k) && (to <? taken_at s) then
        let s := if to <=? rank - skip (S k) then find_from f to at_ s else s in
        let k := length (found s) in
        if (exponents <=? k) || (rank - skip (S k) <? place) then s
        else
          let s := without {| smaller := smaller s; larger := larger s; found := at_ - 1 :: found s; taken_at := to |} (at_ - 1) in
          find_from f place (nth at_ (smaller s) 0) s
      else find_from f place (nth at_ (smaller s) 0) s
  end.
End Search.

(** The last exponent of the sum of distances that gives the rank, the largest distance first. *)
Definition baseblock (distances : list nat) (v : nat) : nat :=
  let q := exponents distances in
  snd (fold_left (fun at_ k => let d := skip distances k in
    if (0 <? fst at_) && (d <=? fst at_) then (fst at_ - d, k) else at_) (rev (seq 0 q)) (v, q)).

(** The blocks that a rank takes in the rounds of the phase before the first one, plus the number of rounds. *)
Definition row_of (P : nat) (distances : list nat) (v : nat) : list nat :=
  let q := exponents distances in let own := baseblock distances v in
  let start := {| smaller := 0 :: seq 0 (S q); larger := seq 1 (q + 2); found := []; taken_at := 2 * P |} in
  let s := find_from distances (P + v) (4 * P) 0 (S q) (without start own) in
  map (fun e => if e =? q then own + q else e) (rev (found s)).

Definition table (P : nat) : list (list nat) := map (row_of P (skips P)) (seq 0 P).
Definition lookup (t : list (list nat)) (v k : nat) : nat := nth k (nth v t []) 0.

(** The broadcast from [top] of [n] elements in blocks of [most]. *)
Definition circulant_broadcast (P top most n : nat) : schedule :=
  let distances := skips P in
  circulant P top (exponents distances) (segment_count most n - 1) (skip distances) (lookup (table P)) (segment_start most n).
Definition circulant_streams (P : nat) : nat := P * exponents (skips P).

Definition table_right (P : nat) : bool :=
  let distances := skips P in
  (1 <=? exponents distances) && table_ok P (exponents distances) (skip distances) (lookup (table P)).

Definition most_ranks : nat := 128.

Lemma tables_right : forallb table_right (seq 2 (most_ranks - 1)) = true.
Proof. (* Qed computes it, and a tactic would do so once more. *) vm_cast_no_check (eq_refl true). Qed.

(** For every number of ranks whose table is right. *)
Theorem circulant_table_correct : forall P top most n, table_right P = true -> top < P -> 1 <= most -> 1 <= n ->
  forall scratch, correct (circulant_broadcast P top most n)
    {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |} scratch.
Proof.
  intros P top most n OK T M N scratch. destruct (segments_fit most n M N) as (A & Z & E).
  apply andb_true_iff in OK as [R OK]. apply Nat.leb_le in R. apply circulant_correct; auto.
  replace (S (segment_count most n - 1)) with (segment_count most n); auto.
  assert (segment_count most n <> 0); [|lia]. intros C. rewrite C in E. lia.
Qed.

(** For these numbers of ranks Coq has computed that the table is right. *)
Theorem circulant_broadcast_correct : forall P top most n, 2 <= P <= most_ranks -> top < P -> 1 <= most -> 1 <= n ->
  forall scratch, correct (circulant_broadcast P top most n)
    {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |} scratch.
Proof.
  intros P top most n B. apply circulant_table_correct. pose proof tables_right as R. rewrite forallb_forall in R.
  apply R, in_seq. unfold most_ranks in *. lia.
Qed.
