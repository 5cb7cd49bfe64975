(** The beginning of all files about families: what they import, what stays folded, and the buffers of collectives. *)
From Coq Require Export List Arith Lia Bool Permutation.
Export ListNotations.
From Unisono Require Export Model Order Determined Collective Checker Ranks Flow Rows.

#[global] Arguments Nat.ltb : simpl never.
#[global] Arguments Nat.leb : simpl never.
#[global] Arguments Nat.eqb : simpl never.
#[global] Arguments Nat.div : simpl never.
#[global] Arguments Nat.modulo : simpl never.
#[global] Arguments Nat.sub : simpl nomatch.

(** The elements of the input and of the output of a rank. *)
Lemma sizes_of : forall c r, r < ranks c ->
  input_size c r = match what c with
    | Scatter => if r =? sender c then whole c else 0
    | ReduceScatter | Alltoall => whole c
    | Broadcast | Message => if r =? sender c then block c else 0
    | _ => block c
    end /\
  output_size c r = match what c with
    | Allgather | Alltoall => whole c
    | Gather => if r =? root c then whole c else 0
    | Message | Reduce => if r =? root c then block c else 0
    | Broadcast => if r =? root c then 0 else block c
    | _ => block c
    end.
Proof.
  intros c r R. unfold input_size, output_size. destruct (Nat.ltb_spec r (ranks c)); [auto|lia].
Qed.

(** An output of [n] elements has one demand, [x]. *)
Ltac one_demand d k n x DI KL :=
  let D := fresh in
  assert (D : d = x /\ k < n) by (clear - DI KL; destruct n; [contradiction|destruct DI as [<-|[]]; auto]);
  destruct D as [-> KN]; cbn [d_from d_len d_element d_first d_ranks Nat.add].
