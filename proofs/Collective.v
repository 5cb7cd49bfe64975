(** The collectives: the inputs of the ranks, and the expression that each element of each output must hold. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Unisono Require Import Model.

Inductive kind := Allreduce | Reduce | ReduceScatter | Scan | Allgather | Alltoall | Gather | Broadcast | Message
  | Scatter | Barrier.

(** [ordered]: the operator does not commute. [root] has a meaning for rooted collectives only. *)
Record collective := { what : kind; ranks : nat; elems : nat; root : nat; ordered : bool }.

Section Collective.
Variable c : collective.

(** A message comes from the last rank, or from the first if the root is the last. *)
Definition sender : nat :=
  match what c with Message => if S (root c) =? ranks c then 0 else ranks c - 1 | _ => root c end.

Definition block : nat := match what c with Barrier => 1 | _ => elems c end.
Definition whole : nat := elems c * ranks c.

Definition input_size (r : nat) : nat :=
  if r <? ranks c then
    match what c with
    | Scatter => if r =? sender then whole else 0
    | ReduceScatter | Alltoall => whole
    | Broadcast | Message => if r =? sender then block else 0
    | _ => block
    end
  else 0.

Definition output_size (r : nat) : nat :=
  if r <? ranks c then
    match what c with
    | Allgather | Alltoall => whole
    | Gather => if r =? root c then whole else 0
    | Message | Reduce => if r =? root c then block else 0
    | Broadcast => if r =? root c then 0 else block
    | _ => block
    end
  else 0.

(** Elements [d_from .. d_from + d_len] of an output must combine the elements from [d_element] on of the inputs of the
    ranks [d_first .. d_first + d_ranks]. *)
Record demand := { d_from : nat; d_len : nat; d_element : nat; d_first : nat; d_ranks : nat }.

Definition required (r : nat) : list demand :=
  let n := block in
  let own := match what c with Alltoall | ReduceScatter | Scatter => r * n | _ => 0 end in
  match output_size r with
  | 0 => []
  | l =>
    match what c with
    | Allgather | Alltoall | Gather =>
        map (fun p => {| d_from := p * n; d_len := n; d_element := own; d_first := p; d_ranks := 1 |}) (seq 0 (ranks c))
    | Broadcast | Message | Scatter =>
        [{| d_from := 0; d_len := l; d_element := own; d_first := sender; d_ranks := 1 |}]
    | Scan => [{| d_from := 0; d_len := l; d_element := own; d_first := 0; d_ranks := S r |}]
    | _ => [{| d_from := 0; d_len := l; d_element := own; d_first := 0; d_ranks := ranks c |}]
    end
  end.

Definition inputs : memory := fun p =>
  match p with PBuf r 0 k => if k <? input_size r then Some (Leaf r k) else None | _ => None end.

(** The contributions of an expression, from left to right. *)
Fixpoint leaves (t : tree) : list (nat * nat) :=
  match t with Leaf r e => [(r, e)] | Node a b => leaves a ++ leaves b end.

(** Two lists of contributions are the same for the operator: in the same order if it does not commute, each as often
    otherwise; a barrier may hear of a rank more than once. *)
Definition alike (x y : list (nat * nat)) : Prop :=
  match what c with
  | Barrier => forall a, In a x <-> In a y
  | _ => if ordered c then x = y else Permutation x y
  end.

(** The contributions of element [e] of the ranks in a list. *)
Definition contributions (e : nat) (rs : list nat) : list (nat * nat) := map (fun r => (r, e)) rs.

(** Each element of each output holds exactly the contributions that the collective requires. *)
Definition complete (m : memory) : Prop :=
  forall r d k, r < ranks c -> In d (required r) -> k < d_len d ->
  exists t, m (PBuf r 1 (d_from d + k)) = Some t /\
    alike (leaves t) (contributions (d_element d + k) (seq (d_first d) (d_ranks d))).

(** The demands reach every element of every output. *)
Lemma required_all : forall r x, x < output_size r ->
  exists d, In d (required r) /\ d_from d <= x < d_from d + d_len d.
Proof.
  intros r x X. unfold required. destruct (output_size r) as [|l] eqn:O; [lia|].
  destruct (what c) eqn:W; try (eexists; split; [left; reflexivity|cbn; lia]).
  all: assert (S l = whole) as OW by (revert O; unfold output_size; rewrite W; destruct (r <? ranks c); [|discriminate];
    try destruct (r =? root c); congruence).
  all: assert (B : block = elems c) by (unfold block; now rewrite W).
  all: unfold whole in OW; assert (elems c <> 0) by (intros Z; rewrite Z in OW; discriminate).
  all: exists {| d_from := x / elems c * block; d_len := block; d_element := match what c with Alltoall => r * block | _ => 0 end;
    d_first := x / elems c; d_ranks := 1 |}; rewrite W; cbn [d_from d_len]; rewrite B.
  all: split; [apply in_map_iff; exists (x / elems c); split; auto; apply in_seq|].
  all: try (split; [lia|]; cbn; apply Nat.div_lt_upper_bound; lia).
  all: pose proof (Nat.div_mod x (elems c) ltac:(auto)); pose proof (Nat.mod_upper_bound x (elems c) ltac:(auto)); lia.
Qed.

End Collective.
