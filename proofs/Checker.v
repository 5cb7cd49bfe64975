(** The checker of certificates as one function, and what its acceptance implies. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps OrderCheck Races RaceCheck Collective Contents ContentsCheck.

Section Checker.
Variable sc : schedule.
Variable h : hints.
Variable c : collective.
Variable scratch : nat -> nat.

(** The three checkers, as numbers for a message: 0 accepted, 1 form, order or deadlock, 2 races, 3 contents. *)
Definition verdict (nstreams : nat) (steps : list (nat * list claim)) : nat :=
  let order := List.map fst steps in
  if check_order sc h nstreams order then
    if check_races sc h steps then if check_contents sc h c scratch order then 0 else 3 else 2
  else 1.

Lemma verdict_zero : forall n steps, verdict n steps = 0 ->
  check_order sc h n (List.map fst steps) = true /\ check_races sc h steps = true /\
  check_contents sc h c scratch (List.map fst steps) = true.
Proof.
  unfold verdict. intros n steps V. destruct (check_order _ _ _ _); [|discriminate].
  destruct (check_races _ _ _); [|discriminate]. destruct (check_contents _ _ _ _ _); [auto|discriminate].
Qed.

Notation instr_of := (ins sc).

(** The properties of every execution of an accepted schedule, for any interleaving of lanes. *)
Record correct : Prop := {
  (** No reachable state is stuck, whether instructions move one element at a time, all, or any number between. *)
  never_stuck : forall st, reach sc (inputs c) st -> final sc st \/
    exists i, i < count sc /\ done st i < len (instr_of i) /\
      forall n, done st i + n <= len (instr_of i) -> ready sc (done st) i n;
  (** Every execution ends: no more steps are possible than there are elements in the instructions. *)
  ends_always : forall n st, reach_in sc (inputs c) n st -> n <= sum (count sc) (fun i => len (instr_of i));
  (** Two lanes of a node that touch one place of memory, one of them writing, do so in the same order always: one
      instruction is complete before the other one starts. *)
  no_races : forall i j, i < count sc -> j < count sc -> lane (instr_of i) <> lane (instr_of j) ->
    node (instr_of i) = node (instr_of j) -> clash sc i j ->
    (forall st, reach sc (inputs c) st -> 0 < done st j -> done st i = len (instr_of i)) \/
    (forall st, reach sc (inputs c) st -> 0 < done st i -> done st j = len (instr_of j));
  (** Nothing is read that has not been written. *)
  reads_written : forall st i o, reach sc (inputs c) st -> ready sc (done st) i 1 -> In o (sources (instr_of i)) ->
    mem st (read_place sc (done st) i o) <> None;
  (** At the end, each output holds the contributions that the collective requires, each exactly once. *)
  results : forall st, reach sc (inputs c) st -> final sc st -> complete c (mem st);
  (** Operands lie in their buffers, and no input is written. *)
  in_bounds : forall i o b s, i < count sc -> In o (sources (instr_of i) ++ sinks (instr_of i)) -> o = Buf b s ->
    s + len (instr_of i) <= match b with
      | 0 => input_size c (node (instr_of i)) | 1 => output_size c (node (instr_of i))
      | 2 => scratch (node (instr_of i)) | _ => 0 end;
  inputs_kept : forall i s, i < count sc -> ~ In (Buf 0 s) (sinks (instr_of i)) }.

Lemma clash_sym : forall i j, clash sc i j -> clash sc j i.
Proof. intros i j (p & M & C). exists p. split; auto. tauto. Qed.

Theorem verdict_sound : forall n steps, verdict n steps = 0 -> correct.
Proof.
  intros n steps V. destruct (verdict_zero _ _ V) as (CO & CR & CC).
  destruct (check_order_sound _ _ _ _ CO) as [E R]. pose proof (check_order_form _ _ _ _ CO) as F.
  pose proof (check_order_positions _ _ _ _ CO) as PO. destruct (check_races_sound _ _ _ _ CO CR) as [A RF].
  pose proof (len_pos sc h F) as LP. set (order := List.map fst steps) in *.
  pose proof CC as CC'. unfold check_contents in CC'. apply andb_true_iff in CC' as [B RC].
  pose proof (all_below_spec _ _ B) as BO.
  destruct (run_contents sc h c {| buffers := empty; passing := empty |} order) as [m|] eqn:RCE; [|discriminate].
  constructor.
  - intros st H. exact (no_deadlock sc order (inputs c) st E R H).
  - intros k st. apply executions_end.
  - intros i j I J LN EN C.
    assert (CASE : forall x y, x < count sc -> y < count sc -> lane (instr_of x) <> lane (instr_of y) ->
      node (instr_of x) = node (instr_of y) -> clash sc x y ->
      (exists pre post, order = pre ++ y :: post /\ In x pre) ->
      forall st, reach sc (inputs c) st -> 0 < done st y -> done st x = len (instr_of x)).
    { intros x y X Y L N CL (pre & post & O & P) st H D. apply (RF pre y post x O P L N CL); auto.
      now apply reach_inv in H. }
    destruct (in_split _ _ (in_order sc order R LP j J)) as (pre & post & O).
    pose proof (in_order sc order R LP i I) as II. rewrite O in II. apply in_app_or in II as [II|[->|II]]; [|contradiction|].
    + left. apply CASE; auto. eauto.
    + right. apply CASE; auto using clash_sym. apply in_split in II as (a & b & ->).
      exists (pre ++ j :: a), b. split; [now rewrite O, <- app_assoc|]. apply in_or_app. right. now left.
  - intros st i o. apply (reads_defined sc order E R LP (inputs c) A RF).
    intros pre k post e p O. apply (run_contents_defined sc h c scratch order E R F PO A BO order
      {| buffers := empty; passing := empty |} [] m eq_refl (holds_start sc c) RCE pre k post O). cbn. lia.
  - intros st. now apply (check_contents_sound sc h c scratch n steps).
  - intros i o b s I IO ->. specialize (BO i I). unfold bounds_ok in BO. repeat (apply andb_true_iff in BO as [BO ?]).
    rewrite forallb_forall in *. apply in_app_or in IO as [IO|IO].
    + match goal with X : forall x, In x (sources _) -> _ |- _ => specialize (X _ IO); now apply Nat.leb_le end.
    + match goal with X : forall x, In x (sinks _) -> (match x with Buf b s => s + _ <=? _ | _ => _ end) = true |- _ =>
        specialize (X _ IO); now apply Nat.leb_le end.
  - intros i s I. now apply (sink_not_input sc c scratch).
Qed.

End Checker.
