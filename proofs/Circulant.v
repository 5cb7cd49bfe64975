(** Broadcasts over circulant graphs, of crates/algorithms/src/catalog/circulant.rs: [q] rounds make a phase, and in round
    [k] of each phase rank [v], counted from the root, receives from the rank [skip k] before it. A table says which block;
    each phase brings the blocks [q] later. The broadcast is right for every table that passes [table_ok], whatever the
    number of blocks. Searches.v computes Träff's tables. *)
From Unisono Require Import Families.

Section Circulant.
(** [P] ranks, of which [top] has the vector; segments from [start y] to [start (S y)], the last one number [last]. *)
Variables P top q last : nat.
Variable skip : nat -> nat.
(** The block that a rank receives in a round of the phase before the first one, plus [q]. *)
Variable takes : nat -> nat -> nat.
Variable start : nat -> nat.
Notation virtual := (virtual P top).
Notation real := (real P top).

Definition towards (v k : nat) : nat := if v + skip k <? P then v + skip k else v + skip k - P.
Definition sender (v k : nat) : nat := if skip k <=? v then v - skip k else v + P - skip k.

(** The rounds of the first phase that are left out, so that the last block is sent in the first round of a phase. *)
Definition early : nat := (q - last mod q) mod q.
Definition phases : nat := S ((last + early) / q).

(** The block that a rank receives in round [k] of phase [j]: none before the first, and the last one in place of later
    ones. *)
Definition block_at (j k v : nat) : option nat :=
  if (v =? 0) || (takes v k + j * q <? q + early) then None
  else Some (Nat.min (takes v k + j * q - (q + early)) last).

Definition place (v y : nat) : operand := Buf (if v =? 0 then 0 else 1) (start y).
Definition move_block (y : nat) (o p : operand) : slot := {| size := segment start y; from := [o]; into := [p] |}.
(** Slot [2 * k] sends in round [k], the next one receives. Stream [v * q + k] leads to rank [v] in round [k]. *)
Definition circulant_row (r j m : nat) : slot :=
  let v := virtual r in let k := m / 2 in
  if Nat.even m then
    match block_at j k (towards v k) with
    | Some y => move_block y (place v y) (Str (towards v k * q + k)) | None => nothing end
  else match block_at j k v with Some y => move_block y (Str (v * q + k)) (Buf 1 (start y)) | None => nothing end.
Definition circulant_ports (s : nat) : nat * nat := (real (sender (s / q) (s mod q)), real (s / q)).
Definition circulant : schedule := rows P phases (2 * q) circulant_row circulant_ports.

(** Each rank but the root receives one block of each number modulo [q] and one of the phase itself; a rank that sends a
    block has received it in the same phase before, or in the phase before. *)
Definition rank_ok (v : nat) : bool :=
  let rounds := seq 0 q in let mine := map (takes v) rounds in
  forallb (fun x => x <? 2 * q) mine && existsb (fun x => q <=? x) mine &&
  forallb (fun c => existsb (fun x => x mod q =? c) mine) rounds &&
  forallb (fun k => let u := sender v k in let x := takes v k in
    (u =? 0) || existsb (fun i => takes u i =? x) (seq 0 k) || existsb (fun i => takes u i =? x + q) rounds) rounds.
Definition table_ok : bool :=
  forallb (fun k => (0 <? skip k) && (skip k <? P)) (seq 0 q) && forallb rank_ok (seq 1 (P - 1)).

Variable n : nat.
Variable scratch : nat -> nat.
Hypothesis OK : table_ok = true.
Hypothesis ROUNDS : 1 <= q.
Hypothesis TOP : top < P.
Hypothesis A : ascending start.
Hypothesis Z : start 0 = 0.
Hypothesis N : start (S last) = n.

Definition cc : collective := {| what := Broadcast; ranks := P; elems := n; root := top; ordered := false |}.
Definition taken (j k v e : nat) : tree := match block_at j k v with Some y => Leaf top (start y + e) | None => Leaf 0 0 end.
Definition V (r j m e : nat) : tree :=
  taken j (m / 2) (if Nat.even m then towards (virtual r) (m / 2) else virtual r) e.

Notation virtual_lt := (virtual_lt P top TOP).
Notation real_lt := (real_lt P top TOP).
Notation real_virtual := (real_virtual P top TOP).
Notation virtual_real := (virtual_real P top TOP).
Notation virtual_zero := (virtual_zero P top TOP).

(** * The table *)
Lemma skip_range : forall k, k < q -> 0 < skip k < P.
Proof.
  intros k K. unfold table_ok in OK. apply andb_true_iff in OK as [H _]. rewrite forallb_forall in H.
  specialize (H k ltac:(apply in_seq; lia)). apply andb_true_iff in H as [H1 H2]. apply Nat.ltb_lt in H1, H2. lia.
Qed.

Lemma takes_ok : forall v, 0 < v < P ->
  (forall k, k < q -> takes v k < 2 * q) /\ (exists k, k < q /\ q <= takes v k) /\
  (forall c, c < q -> exists k, k < q /\ takes v k mod q = c) /\
  (forall k, k < q -> sender v k = 0 \/ (exists i, i < k /\ takes (sender v k) i = takes v k) \/
    exists i, i < q /\ takes (sender v k) i = takes v k + q).
Proof.
  intros v B. unfold table_ok in OK. apply andb_true_iff in OK as [_ H]. rewrite forallb_forall in H.
  specialize (H v ltac:(apply in_seq; lia)). unfold rank_ok in H.
  apply andb_true_iff in H as [H SENT]. apply andb_true_iff in H as [H EACH]. apply andb_true_iff in H as [H OWN].
  rewrite forallb_forall in *.
  assert (MINE : forall f, existsb f (map (takes v) (seq 0 q)) = true -> exists k, k < q /\ f (takes v k) = true).
  { intros f E. apply existsb_exists in E as (x & I & X). apply in_map_iff in I as (k & <- & I). apply in_seq in I.
    exists k. split; [lia|auto]. }
  assert (SOME : forall f m, existsb f (seq 0 m) = true -> exists i, i < m /\ f i = true).
  { intros f m E. apply existsb_exists in E as (i & I & X). apply in_seq in I. exists i. split; [lia|auto]. }
  split; [|split; [|split]].
  - intros k K. apply Nat.ltb_lt, H, in_map, in_seq. lia.
  - apply MINE in OWN as (k & K & X). apply Nat.leb_le in X. eauto.
  - intros c C. destruct (MINE _ (EACH c ltac:(apply in_seq; lia))) as (k & K & X). apply Nat.eqb_eq in X. eauto.
  - intros k K. specialize (SENT k ltac:(apply in_seq; lia)). apply orb_true_iff in SENT as [X|X];
      [apply orb_true_iff in X as [X|X]|].
    + left. now apply Nat.eqb_eq.
    + right. left. apply SOME in X as (i & I & X). apply Nat.eqb_eq in X. eauto.
    + right. right. apply SOME in X as (i & I & X). apply Nat.eqb_eq in X. eauto.
Qed.

(** * Blocks *)
Lemma block_some : forall j k v y, block_at j k v = Some y ->
  v <> 0 /\ q + early <= takes v k + j * q /\ y = Nat.min (takes v k + j * q - (q + early)) last.
Proof.
  intros j k v y H. unfold block_at in H. destruct (Nat.eqb_spec v 0); [discriminate|].
  destruct (Nat.ltb_spec (takes v k + j * q) (q + early)); [discriminate|]. injection H as <-. auto.
Qed.

Lemma block_made : forall j k v, v <> 0 -> q + early <= takes v k + j * q ->
  block_at j k v = Some (Nat.min (takes v k + j * q - (q + early)) last).
Proof.
  intros j k v NZ H. unfold block_at. destruct (Nat.eqb_spec v 0); [contradiction|].
  destruct (Nat.ltb_spec (takes v k + j * q) (q + early)); [lia|auto].
Qed.

Lemma early_last : exists t, last + early = t * q /\ early < q.
Proof.
  unfold early. pose proof (Nat.div_mod last q ltac:(lia)) as D. pose proof (Nat.mod_upper_bound last q ltac:(lia)) as M.
  destruct (Nat.eq_dec (last mod q) 0) as [Q|Q].
  - rewrite Q, Nat.sub_0_r, Nat.mod_same by lia. exists (last / q). split; [nia|lia].
  - rewrite Nat.mod_small by lia. exists (S (last / q)). split; [nia|lia].
Qed.

Lemma phases_last : last + early = (phases - 1) * q.
Proof.
  destruct early_last as (t & E & _). unfold phases. rewrite E, Nat.div_mul by lia. f_equal. lia.
Qed.

(** A rank has what it sends: it received the block before. *)
Lemma sent_received : forall j k w y, j < phases -> k < q -> 0 < w < P -> block_at j k w = Some y -> sender w k <> 0 ->
  exists j' i, j' <= j /\ i < q /\ earlier j' (S (2 * i)) j (2 * k) /\ block_at j' i (sender w k) = Some y.
Proof.
  intros j k w y J K W H NZ. destruct (block_some _ _ _ _ H) as (_ & LO & ->).
  assert (SB : sender w k < P).
  { pose proof (skip_range k K). unfold sender. destruct (Nat.leb_spec (skip k) w); lia. }
  destruct (takes_ok w W) as (_ & _ & _ & S). destruct (S k K) as [|[(i & I & E)|(i & I & E)]]; [contradiction| |].
  - exists j, i. split; [lia|]. split; [lia|]. split; [right; lia|]. rewrite <- E in *. apply block_made; auto.
  - destruct (takes_ok (sender w k) ltac:(lia)) as (T & _). pose proof (T i I). destruct j as [|j]; [lia|].
    exists j, i. split; [lia|]. split; [lia|]. split; [left; lia|]. rewrite block_made; auto; [|lia].
    do 2 f_equal. lia.
Qed.

(** Every rank but the root receives every block. *)
Lemma all_received : forall v y, 0 < v < P -> y <= last -> exists j k, j < phases /\ k < q /\ block_at j k v = Some y.
Proof.
  intros v y B Y. destruct (takes_ok v B) as (T & (b & BQ & BL) & C & _). pose proof phases_last as PL.
  assert (PP : 0 < phases) by (unfold phases; lia).
  assert (M : (y + early) mod q < q) by (apply Nat.mod_upper_bound; lia).
  destruct (C _ M) as (k & K & E). pose proof (T k K) as TK.
  pose proof (Nat.div_mod (y + early) q ltac:(lia)) as D1. pose proof (Nat.div_mod (takes v k) q ltac:(lia)) as D2.
  rewrite E in D2. set (a := (y + early) / q) in *. set (c := (y + early) mod q) in *. set (t := takes v k / q) in *.
  assert (T2 : t <= 1) by nia.
  assert (AL : a <= phases - 1) by nia.
  destruct (Nat.eq_dec (a + 1 - t) phases) as [LATE|IN].
  - (* Only the last block: the rank receives it in the round of its block of the last phase itself. *)
    assert (Y1 : y = last) by nia. exists (phases - 1), b. split; [lia|]. split; auto.
    rewrite block_made; [|lia|nia]. f_equal. subst y. apply Nat.min_r. nia.
  - exists (a + 1 - t), k. split; [lia|]. split; auto.
    assert (X : takes v k + (a + 1 - t) * q = q + early + y) by nia.
    rewrite block_made; [|lia|lia]. f_equal. rewrite X. lia.
Qed.

Lemma towards_lt : forall v k, k < q -> v < P -> towards v k < P.
Proof. intros v k K B. pose proof (skip_range k K). unfold towards. destruct (Nat.ltb_spec (v + skip k) P); lia. Qed.
Lemma sender_lt : forall v k, k < q -> v < P -> sender v k < P.
Proof. intros v k K B. pose proof (skip_range k K). unfold sender. destruct (Nat.leb_spec (skip k) v); lia. Qed.
Lemma sender_towards : forall v k, k < q -> v < P -> sender (towards v k) k = v.
Proof.
  intros v k K B. pose proof (skip_range k K). unfold sender, towards. destruct (Nat.ltb_spec (v + skip k) P).
  - destruct (Nat.leb_spec (skip k) (v + skip k)); lia.
  - destruct (Nat.leb_spec (skip k) (v + skip k - P)); lia.
Qed.
Lemma towards_sender : forall v k, k < q -> v < P -> towards (sender v k) k = v.
Proof.
  intros v k K B. pose proof (skip_range k K). unfold sender, towards. destruct (Nat.leb_spec (skip k) v).
  - destruct (Nat.ltb_spec (v - skip k + skip k) P); lia.
  - destruct (Nat.ltb_spec (v + P - skip k + skip k) P); lia.
Qed.

(** * The rows *)
Lemma half : forall m, m < 2 * q -> m / 2 < q.
Proof. intros m M. apply Nat.div_lt_upper_bound; lia. Qed.

Lemma parity : forall m, Nat.even m = true /\ m = 2 * (m / 2) \/ Nat.even m = false /\ m = S (2 * (m / 2)).
Proof. intros m. destruct (halves m) as (h & -> & [[E H]|[E H]]); [left|right]; split; auto; lia. Qed.

Lemma stream_parts : forall v k, k < q -> (v * q + k) / q = v /\ (v * q + k) mod q = k.
Proof.
  intros v k K. split; [rewrite Nat.div_add_l, Nat.div_small by lia; lia|].
  rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. reflexivity.
Qed.

(** The instructions of a row that are not empty. *)
Inductive at_slot (r j m : nat) : slot -> Prop :=
  | at_nothing : at_slot r j m nothing
  | at_send : forall y, Nat.even m = true -> block_at j (m / 2) (towards (virtual r) (m / 2)) = Some y ->
      at_slot r j m (move_block y (place (virtual r) y) (Str (towards (virtual r) (m / 2) * q + m / 2)))
  | at_receive : forall y, Nat.even m = false -> block_at j (m / 2) (virtual r) = Some y ->
      at_slot r j m (move_block y (Str (virtual r * q + m / 2)) (Buf 1 (start y))).

Lemma row_cases : forall r j m, at_slot r j m (circulant_row r j m).
Proof.
  intros r j m. unfold circulant_row. destruct (Nat.even m) eqn:E.
  - destruct (block_at j (m / 2) (towards (virtual r) (m / 2))) as [y|] eqn:B; [now apply at_send|constructor].
  - destruct (block_at j (m / 2) (virtual r)) as [y|] eqn:B; [now apply at_receive|constructor].
Qed.

Lemma row_pushes : forall r j m s, mentions (into (circulant_row r j m)) s = true ->
  Nat.even m = true /\ s = towards (virtual r) (m / 2) * q + m / 2.
Proof.
  intros r j m s H. apply in_streams in H. destruct (row_cases r j m) as [|y E B|y E B]; cbn in H; try contradiction;
    destruct H as [H|[]]; [injection H as <-; auto|discriminate].
Qed.

Lemma row_pops : forall r j m s, mentions (from (circulant_row r j m)) s = true ->
  Nat.even m = false /\ s = virtual r * q + m / 2 /\ block_at j (m / 2) (virtual r) <> None.
Proof.
  intros r j m s H. apply in_streams in H. destruct (row_cases r j m) as [|y E B|y E B]; cbn in H; try contradiction;
    destruct H as [H|[]]; [unfold place in H; discriminate|]. injection H as <-. rewrite B. repeat split; auto. discriminate.
Qed.

Lemma row_sink : forall r j m b s, In (Buf b s) (into (circulant_row r j m)) ->
  b = 1 /\ virtual r <> 0 /\ exists y, y <= last /\ s = start y /\ size (circulant_row r j m) = segment start y /\
    forall e, V r j m e = Leaf top (s + e).
Proof.
  intros r j m b s H. pose proof (row_cases r j m) as C. destruct C as [|y E B|y E B]; cbn in H; try contradiction;
    destruct H as [H|[]]; [discriminate|]. injection H as <- <-. destruct (block_some _ _ _ _ B) as (NZ & _ & Y).
  split; auto. split; auto. exists y. repeat split; [lia|]. intros e. unfold V, taken. now rewrite E, B.
Qed.

Lemma row_source : forall r j m b s, In (Buf b s) (from (circulant_row r j m)) ->
  Nat.even m = true /\ exists y, y <= last /\ block_at j (m / 2) (towards (virtual r) (m / 2)) = Some y /\
    Buf b s = place (virtual r) y /\ size (circulant_row r j m) = segment start y.
Proof.
  intros r j m b s H. pose proof (row_cases r j m) as C. destruct C as [|y E B|y E B]; cbn in H; try contradiction;
    destruct H as [H|[]]; [|discriminate]. destruct (block_some _ _ _ _ B) as (_ & _ & Y).
  split; auto. exists y. repeat split; auto. lia.
Qed.

Lemma row_receive : forall r j k y, k < q -> block_at j k (virtual r) = Some y ->
  circulant_row r j (S (2 * k)) = move_block y (Str (virtual r * q + k)) (Buf 1 (start y)).
Proof.
  intros r j k y K B. unfold circulant_row. destruct (parity (S (2 * k))) as [[E X]|[E X]]; [lia|].
  replace (S (2 * k) / 2) with k by lia. now rewrite E, B.
Qed.

Lemma row_send : forall r j k y, k < q -> block_at j k (towards (virtual r) k) = Some y ->
  circulant_row r j (2 * k) = move_block y (place (virtual r) y) (Str (towards (virtual r) k * q + k)).
Proof.
  intros r j k y K B. unfold circulant_row. destruct (parity (2 * k)) as [[E X]|[E X]]; [|lia].
  replace (2 * k / 2) with k by lia. now rewrite E, B.
Qed.

Lemma sizes : forall r, r < P -> input_size cc r = (if r =? top then n else 0) /\ output_size cc r = (if r =? top then 0
  else n).
Proof. intros r. apply (sizes_of cc). Qed.

(** A block that a rank has received is in its output. *)
Lemma received_before : forall r j k y e i, r < P -> j < phases -> k < q -> i <= P * phases * (2 * q) ->
  index phases (2 * q) r j (S (2 * k)) < i -> block_at j k (virtual r) = Some y -> e < segment start y ->
  before circulant cc (value_at phases (2 * q) V) r i 1 (start y + e) = Some (Leaf top (start y + e)).
Proof.
  intros r j k y e i R J K I L B E. pose proof (row_receive r j k y K B) as RR.
  apply (same_written P phases (2 * q) circulant_row circulant_ports cc V i r j (S (2 * k))); auto; try lia.
  - rewrite RR. now left.
  - now rewrite RR.
  - intros j' m' s' k' J' M' IN _ <-. destruct (row_sink _ _ _ _ _ IN) as (_ & _ & y' & _ & _ & _ & VE). apply VE.
Qed.

Lemma circulant_in_rows : in_rows P phases (2 * q) circulant_row circulant_ports cc scratch V
  (fun _ j m s e => taken j (m / 2) (s / q) e) (fun _ j m => j * (2 * q) + m).
Proof.
  constructor.
  - intros r j m b s R _ _ I. pose proof (sizes r R) as [IN OUT].
    assert (FITS : forall y, y <= last -> start y + segment start y <= n)
      by (intros y Y; apply (segment_fits start (S last) n A N); lia).
    apply in_app_or in I as [I|I].
    + destruct (row_source _ _ _ _ _ I) as (_ & y & Y & _ & PL & ->). unfold place in PL. unfold room.
      destruct (Nat.eqb_spec (virtual r) 0) as [V0|V0]; injection PL as -> ->.
      * apply virtual_zero in V0; auto. rewrite IN. subst r. rewrite Nat.eqb_refl. auto.
      * rewrite OUT. destruct (Nat.eqb_spec r top); [exfalso; apply V0; now apply virtual_zero|auto].
    + destruct (row_sink _ _ _ _ _ I) as (-> & V0 & y & Y & -> & -> & _). unfold room. rewrite OUT.
      destruct (Nat.eqb_spec r top); [exfalso; apply V0; now apply virtual_zero|auto].
  - intros r j m s _ _ _ I. apply row_sink in I. lia.
  - intros r j m o p R J M IO IP. pose proof (row_cases r j m) as C.
    destruct C as [|y E B|y E B]; cbn in IO, IP; try contradiction; destruct IO as [<-|[]]; [exact Logic.I|].
    destruct IP as [<-|[<-|[]]]; cbn; auto.
  - intros r j m r' j' m' s R J M R' J' M' X Y. apply row_pushes in X as [E ->], Y as [E' H].
    pose proof (half m M) as K. pose proof (half m' M') as K'.
    destruct (stream_parts (towards (virtual r) (m / 2)) (m / 2) K) as [D1 D2].
    destruct (stream_parts (towards (virtual r') (m' / 2)) (m' / 2) K') as [D1' D2'].
    assert (KE : m / 2 = m' / 2) by congruence. assert (TE : towards (virtual r) (m / 2) = towards (virtual r') (m' / 2))
      by congruence.
    destruct (parity m) as [[_ MM]|[F _]]; [|congruence]. destruct (parity m') as [[_ MM']|[F _]]; [|congruence].
    split; [|lia]. rewrite <- (real_virtual r), <- (real_virtual r') by auto. f_equal.
    rewrite <- (sender_towards (virtual r) (m / 2)), <- (sender_towards (virtual r') (m' / 2)) by auto using virtual_lt.
    congruence.
  - intros r j m j' m' s R J M J' M' X Y. apply row_pops in X as (E & -> & _), Y as (E' & H & _).
    destruct (stream_parts (virtual r) (m / 2) (half m M)) as [_ D]. destruct (stream_parts (virtual r) (m' / 2) (half m' M')) as [_ D'].
    assert (m / 2 = m' / 2) by congruence. destruct (parity m) as [[F _]|[_ MM]]; [congruence|].
    destruct (parity m') as [[F _]|[_ MM']]; [congruence|]. lia.
  - intros r j m s R J M X. apply row_pops in X as (E & -> & B). destruct (parity m) as [[F _]|[_ MM]]; [congruence|].
    pose proof (half m M) as K. set (k := m / 2) in *. pose proof (virtual_lt r R) as VR. set (v := virtual r) in *.
    destruct (block_at j k v) as [y|] eqn:BE; [|contradiction].
    pose proof (sender_lt v k K VR) as SL. set (u := real (sender v k)).
    assert (UV : virtual u = sender v k) by now apply virtual_real.
    assert (TU : towards (virtual u) k = v) by (rewrite UV; now apply towards_sender).
    assert (SENT : forall j', pushed_by circulant_row u (2 * k) (v * q + k) j' = popped_by circulant_row r m (v * q + k) j').
    { intros j'. unfold pushed_by, popped_by. destruct (block_at j' k v) as [y'|] eqn:B'.
      - rewrite MM, (row_receive r j' k y' K B'), (row_send u j' k y') by (rewrite ?TU; auto). rewrite TU.
        unfold mentions. cbn [into from size move_block streams_of existsb]. reflexivity.
      - assert (N1 : circulant_row u j' (2 * k) = nothing).
        { unfold circulant_row. destruct (parity (2 * k)) as [[E1 X1]|[E1 X1]]; [|lia].
          replace (2 * k / 2) with k by lia. now rewrite E1, TU, B'. }
        assert (N2 : circulant_row r j' m = nothing).
        { unfold circulant_row. fold k. fold v. now rewrite E, B'. }
        rewrite N1, N2. reflexivity. }
    exists u, j, (2 * k). rewrite (row_send u j k y) by (rewrite ?TU; auto). rewrite TU.
    rewrite MM at 2. rewrite (row_receive r j k y) by auto. cbn [size move_block].
    split; [now apply real_lt|]. split; auto. split; [lia|]. split; [apply in_streams; now left|].
    split; [apply sum_ext; auto|]. split; auto. split; [lia|]. intros e _.
    unfold V. destruct (parity (2 * k)) as [[E1 X1]|[E1 X1]]; [|lia]. replace (2 * k / 2) with k by lia. rewrite E1, TU.
    now destruct (stream_parts v k K) as [-> _].
  - intros r j m j' m' _ _ M M' [L|[-> L]]; nia.
  - intros r j m e R J M EL. pose proof (half m M) as K. pose proof (virtual_lt r R) as VR. unfold V.
    pose proof (row_cases r j m) as C. destruct C as [|y E B|y E B]; cbn [size from move_block nothing] in *; [lia| |].
    + rewrite E. unfold taken. rewrite B. cbn [map]. unfold place. destruct (Nat.eqb_spec (virtual r) 0) as [V0|V0].
      * cbn [source_at]. rewrite held_input; auto; [|intros j' m' s _ _ I; apply row_sink in I; lia]. cbn.
        apply virtual_zero in V0; auto. subst r. rewrite (proj1 (sizes top TOP)), Nat.eqb_refl.
        destruct (block_some _ _ _ _ B) as (_ & _ & Y).
        pose proof (segment_fits start (S last) n A N y ltac:(lia)).
        destruct (Nat.ltb_spec (start y + e) n); [reflexivity|lia].
      * cbn [source_at]. set (w := towards (virtual r) (m / 2)) in *. destruct (block_some _ _ _ _ B) as (W0 & _ & _).
        assert (WS : sender w (m / 2) = virtual r) by (apply sender_towards; auto).
        assert (WP : w < P) by (apply towards_lt; auto).
        destruct (sent_received j (m / 2) w y J K ltac:(lia) B ltac:(congruence)) as (j' & i & J' & I & EA & B').
        rewrite WS in B'. unfold held.
        assert (ME : m = 2 * (m / 2)) by (destruct (parity m) as [[_ X]|[F _]]; [auto|congruence]).
        rewrite (received_before r j' i y e); auto; try lia.
        -- pose proof (index_lt P phases (2 * q) r j m R J M). lia.
        -- apply index_earlier; [lia|lia|]. rewrite ME. exact EA.
    + rewrite E. cbn [map source_at]. unfold taken. destruct (stream_parts (virtual r) (m / 2) K) as [-> _].
      now rewrite B.
Qed.

Theorem circulant_correct : correct circulant cc scratch.
Proof.
  pose proof (rows_flow _ _ _ _ _ _ _ _ _ _ circulant_in_rows) as FL. apply (flow_correct _ _ _ _ _ _ FL).
  intros st H F r d k R DI KL. cbn [ranks cc] in R. unfold required in DI. rewrite (proj2 (sizes r R)) in DI.
  destruct (Nat.eqb_spec r top) as [E|NE]; [contradiction|].
  assert (V0 : virtual r <> 0) by (intros X; apply NE; now apply virtual_zero). pose proof (virtual_lt r R).
  one_demand d k n {| d_from := 0; d_len := n; d_element := 0; d_first := top; d_ranks := 1 |} DI KL.
  destruct (block_of start (S last) k A) as (y & Y & RNG); [lia|lia|].
  destruct (all_received (virtual r) y ltac:(lia) ltac:(lia)) as (j & i & J & I & B).
  rewrite (final_contents _ _ _ _ _ _ FL) by auto. exists (Leaf top k). split; [|unfold alike; cbn; reflexivity].
  replace k with (start y + (k - start y)) by lia. apply (received_before r j i); auto; try lia.
  - apply index_lt; auto. lia.
  - unfold segment. lia.
Qed.

End Circulant.
