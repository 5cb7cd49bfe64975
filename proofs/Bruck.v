(** The allgather of crates/algorithms/src/catalog/bruck.rs, for every number of ranks: in round [k] each rank sends the
    blocks that it has to the rank 2^[k] before it. A rank other than 0 holds the blocks from its own on, and rotates
    them at the end. *)
From Unisono Require Import Families.

#[local] Arguments Nat.mul : simpl never.
#[local] Arguments Nat.pow : simpl never.

Section Bruck.
(** [P] ranks with [n] elements each. *)
Variables P n : nat.

Definition rounds : nat := Nat.log2_up P.
(** The buffer in which a rank collects the blocks, and the number of blocks of a message. *)
Definition hoard (q : nat) : nat := if q =? 0 then 1 else 2.
Definition sent (k : nat) : nat := Nat.min (2 ^ k) (P - 2 ^ k).

Definition copy (l : nat) (o p : operand) : slot := {| size := l; from := [o]; into := [p] |}.
Definition bruck_row (q j m : nat) : slot :=
  match j with
  | 0 => if m =? 0 then copy n (Buf 0 0) (Buf (hoard q) 0) else nothing
  | S k =>
    if k <? rounds then
      if m =? 0 then copy (sent k * n) (Buf (hoard q) 0) (Str (k * P + q))
      else copy (sent k * n) (Str (k * P + (q + 2 ^ k) mod P)) (Buf (hoard q) (2 ^ k * n))
    else if q =? 0 then nothing
    else if m =? 0 then copy ((P - q) * n) (Buf (hoard q) 0) (Buf 1 (q * n))
    else copy (q * n) (Buf (hoard q) ((P - q) * n)) (Buf 1 0)
  end.
Definition bruck_ports (s : nat) : nat * nat := (s mod P, (s mod P + P - 2 ^ (s / P)) mod P).
Definition bruck_scratch (q : nat) : nat := if q =? 0 then 0 else P * n.

Definition bruck_allgather : schedule := rows P (S (S rounds)) 2 bruck_row bruck_ports.

Variable in_order : bool.
Hypothesis P2 : 2 <= P.

Definition ac : collective := {| what := Allgather; ranks := P; elems := n; root := 0; ordered := in_order |}.

(** Element [x] of the blocks that a rank collects. *)
Definition collected (q x : nat) : tree := Leaf ((q + x / n) mod P) (x mod n).
Definition V (q j m e : nat) : tree :=
  match j with
  | 0 => collected q e
  | S k => collected q (e + if m =? 0 then 0 else if k <? rounds then 2 ^ k * n else (P - q) * n)
  end.
Definition got (q j _ _ e : nat) : tree := match j with 0 => Leaf 0 0 | S k => collected q (e + 2 ^ k * n) end.

Inductive at_slot (q j m : nat) : slot -> Prop :=
  | at_nothing : at_slot q j m nothing
  | at_own : j = 0 -> m = 0 -> at_slot q j m (copy n (Buf 0 0) (Buf (hoard q) 0))
  | at_send : forall k, j = S k -> k < rounds -> m = 0 -> at_slot q j m (copy (sent k * n) (Buf (hoard q) 0) (Str (k * P
    + q)))
  | at_receive : forall k, j = S k -> k < rounds -> m <> 0 ->
      at_slot q j m (copy (sent k * n) (Str (k * P + (q + 2 ^ k) mod P)) (Buf (hoard q) (2 ^ k * n)))
  | at_high : rounds < j -> m = 0 -> q <> 0 -> at_slot q j m (copy ((P - q) * n) (Buf (hoard q) 0) (Buf 1 (q * n)))
  | at_low : rounds < j -> m <> 0 -> q <> 0 -> at_slot q j m (copy (q * n) (Buf (hoard q) ((P - q) * n)) (Buf 1 0)).

Lemma row_cases : forall q j m, at_slot q j m (bruck_row q j m).
Proof.
  intros q j m. unfold bruck_row. destruct j as [|k]; [|destruct (Nat.ltb_spec k rounds);
  [|destruct (Nat.eqb_spec q 0)]].
  - destruct (Nat.eqb_spec m 0); [now apply at_own|constructor].
  - destruct (Nat.eqb_spec m 0); [now apply (at_send q (S k) m k)|now apply (at_receive q (S k) m k)].
  - constructor.
  - destruct (Nat.eqb_spec m 0); [apply at_high|apply at_low]; auto; lia.
Qed.

Lemma round_lt : forall k, k < rounds -> 2 ^ k < P.
Proof. intros k K. apply Nat.log2_up_lt_pow2; auto. lia. Qed.

Lemma rounds_all : P <= 2 ^ rounds.
Proof. apply Nat.log2_up_spec. lia. Qed.

Lemma stream_parts : forall k q, q < P -> (k * P + q) / P = k /\ (k * P + q) mod P = q.
Proof.
  intros k q Q. split; [rewrite Nat.div_add_l, Nat.div_small by lia; lia|].
  rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. reflexivity.
Qed.

Lemma row_pushes : forall q j m s, mentions (into (bruck_row q j m)) s = true -> m = 0 /\ exists k,
  j = S k /\ k < rounds /\ s = k * P + q.
Proof.
  intros q j m s H. apply in_streams in H. destruct (row_cases q j m) as [ |J M|k J K M|k J K M|J M Z|J M Z]; cbn in H;
  try contradiction;
    destruct H as [H|[]]; try discriminate. injection H as <-. split; auto. exists k. auto.
Qed.

Lemma row_pops : forall q j m s, mentions (from (bruck_row q j m)) s = true ->
  m <> 0 /\ exists k, j = S k /\ k < rounds /\ s = k * P + (q + 2 ^ k) mod P.
Proof.
  intros q j m s H. apply in_streams in H. destruct (row_cases q j m) as [ |J M|k J K M|k J K M|J M Z|J M Z]; cbn in H;
  try contradiction;
    destruct H as [H|[]]; try discriminate. injection H as <-. split; auto. exists k. auto.
Qed.

Lemma not_input : forall q j m s, ~ In (Buf 0 s) (into (bruck_row q j m)).
Proof.
  intros q j m s H. unfold hoard in *. destruct (row_cases q j m); cbn in H; try contradiction; destruct H as [H|[]];
  try discriminate;
    unfold hoard in H; destruct (q =? 0); discriminate.
Qed.

Lemma sizes : forall r, r < P -> input_size ac r = n /\ output_size ac r = n * P.
Proof. intros r. apply (sizes_of ac). Qed.

(** The contributions that a rank collects, with the instruction that wrote them. *)
Lemma collected_before : forall q k i x, q < P -> k <= rounds -> index (S (S rounds)) 2 q (S k) 0 <= i -> i <= P * S (S
  rounds) * 2 ->
  (forall j m t, j < S (S rounds) -> m < 2 -> index (S (S rounds)) 2 q j m < i -> In (Buf (hoard q) t) (into (bruck_row
    q j m)) -> j <= k) ->
  x < Nat.min (2 ^ k) P * n ->
  before (rows P (S (S rounds)) 2 bruck_row bruck_ports) ac (value_at (S (S rounds)) 2 V) q i (hoard q) x = Some
    (collected q x).
Proof.
  intros q k i x Q K LO HI LATE X. assert (NZ : n <> 0) by nia.
  assert (XN : x / n < Nat.min (2 ^ k) P) by (apply Nat.div_lt_upper_bound; lia). pose proof (Nat.div_mod x n NZ) as DM.
  pose proof (Nat.mod_upper_bound x n NZ) as MB.
  destruct (Nat.lt_ge_cases x n) as [XS|XL].
  - change x with (0 + x) at 1. rewrite (last_written P (S (S rounds)) 2 bruck_row bruck_ports ac V i q 0 0 (hoard q) 0
    x); auto; try lia.
    + unfold index in *. lia.
    + intros t [I|[]]. congruence.
    + now left.
    + intros j' m' J' M' E L t I. pose proof (LATE j' m' t J' M' L I). destruct (row_cases q j' m') as [ |J M|k' J KR
      M|k' J KR M|J M ZQ|J M ZQ]; cbn in I;
        try contradiction; destruct I as [I|[]]; try discriminate.
      * unfold earlier in E. lia.
      * injection I as <-. left. pose proof (Nat.pow_nonzero 2 k' ltac:(lia)) as NK. clear - NK XS. nia.
      * lia.
      * lia.
  - assert (B1 : 1 <= x / n) by (apply Nat.div_le_lower_bound; lia).
    pose proof (Nat.log2_spec (x / n) ltac:(lia)) as [L1 L2]. set (h := Nat.log2 (x / n)) in *.
    rewrite Nat.pow_succ_r' in L2.
    assert (HK : h < k) by (apply (Nat.pow_lt_mono_r_iff 2); lia).
    assert (R1 : bruck_row q (S h) 1 = copy (sent h * n) (Str (h * P + (q + 2 ^ h) mod P)) (Buf (hoard q) (2 ^ h * n))).
    { unfold bruck_row. destruct (Nat.ltb_spec h rounds); [reflexivity|lia]. }
    assert (X1 : 2 ^ h * n <= x) by (clear - L1 DM; nia).
    assert (X2 : x < 2 * 2 ^ h * n) by (clear - L2 DM MB; nia).
    replace x with (2 ^ h * n + (x - 2 ^ h * n)) at 1 by lia.
    rewrite (last_written P (S (S rounds)) 2 bruck_row bruck_ports ac V i q (S h) 1 (hoard q) (2 ^ h * n) (x - 2 ^ h *
    n)); auto; try lia.
    + unfold V. change (1 =? 0) with false. destruct (Nat.ltb_spec h rounds); [|lia]. do 2 f_equal. lia.
    + unfold index in *. nia.
    + rewrite R1. intros t [I|[]]. congruence.
    + rewrite R1. now left.
    + rewrite R1. cbn [size copy]. unfold sent. assert (XP : x < P * n) by nia. clear - X1 X2 XP. nia.
    + intros j' m' J' M' E L t I. pose proof (LATE j' m' t J' M' L I). destruct (row_cases q j' m') as [ |J M|k' J KR
      M|k' J KR M|J M ZQ|J M ZQ]; cbn in I;
        try contradiction; destruct I as [I|[]]; try discriminate.
      * unfold earlier in E. lia.
      * injection I as <-. left. assert (G : 2 ^ S h <= 2 ^ k') by (apply Nat.pow_le_mono_r; unfold earlier in E; lia).
        rewrite Nat.pow_succ_r' in G. clear - G X1 X2. nia.
      * lia.
      * lia.
Qed.

Lemma collected_held : forall q k m x, q < P -> k <= rounds -> m < 2 -> x < Nat.min (2 ^ k) P * n ->
  held P (S (S rounds)) 2 bruck_row bruck_ports ac V q (S k) m (hoard q) x = Some (collected q x).
Proof.
  intros q k m x Q K M X. unfold held. apply (collected_before q k); auto.
  - unfold index. lia.
  - pose proof (index_lt P (S (S rounds)) 2 q (S k) m Q ltac:(lia) M). lia.
  - intros j' m' t J' M' L I. apply index_earlier in L; [|auto|auto]. unfold earlier in L.
    destruct (Nat.eq_dec j' (S k)) as [->|]; [|lia]. exfalso. assert (m' = 0) by lia. subst m'.
    destruct (row_cases q (S k) 0) as [ |J M0|k' J KR M0|k' J KR M0|J M0 ZQ|J M0 ZQ]; cbn in I; try contradiction;
    try lia;
      destruct I as [I|[]]; try discriminate. unfold hoard in I. destruct (Nat.eqb_spec q 0);
      [contradiction|discriminate].
Qed.

Lemma collected_small : forall q e, q < P -> e < n -> collected q e = Leaf q e.
Proof.
  intros q e Q E. unfold collected. rewrite (Nat.div_small e), (Nat.mod_small e) by auto.
  now rewrite Nat.add_0_r, Nat.mod_small.
Qed.

Lemma collected_shift : forall q b e, n <> 0 -> collected q (e + b * n) = Leaf ((q + b + e / n) mod P) (e mod n).
Proof. intros q b e NZ. unfold collected. rewrite Nat.div_add, Nat.mod_add by auto. do 2 f_equal. lia. Qed.

Lemma bruck_in_rows : in_rows P (S (S rounds)) 2 bruck_row bruck_ports ac bruck_scratch V got (fun _ j m => 2 * j + m).
Proof.
  constructor.
  - intros q j m b s Q J M I. destruct (sizes q Q) as [IN OUT].
    assert (HR : room ac bruck_scratch q (hoard q) = P * n).
    { unfold hoard, room, bruck_scratch. destruct (Nat.eqb_spec q 0); [rewrite OUT; lia|reflexivity]. }
    destruct (row_cases q j m) as [ |_ _|k _ KR _|k _ KR _|_ _ ZQ|_ _ ZQ]; cbn [from into size copy nothing app] in *;
    try contradiction;
      destruct I as [I|[I|[]]]; try discriminate; injection I as <- <-; rewrite ?HR; try pose proof (round_lt k KR);
      unfold sent.
    + cbn [room]. lia.
    + nia.
    + nia.
    + nia.
    + nia.
    + cbn [room]. rewrite OUT. nia.
    + nia.
    + cbn [room]. rewrite OUT. nia.
  - intros q j m s _ _ _. apply not_input.
  - intros q j m o p Q J M IO IP.
    destruct (row_cases q j m) as [ |_ _|k _ KR _|k _ KR _|_ _ ZQ|_ _ ZQ]; cbn [from into size copy nothing app] in *;
    try contradiction;
      destruct IO as [<-|[]]; destruct IP as [<-|[<-|[]]]; cbn [apart]; auto; unfold hoard;
      try (destruct (Nat.eqb_spec q 0)); intros; try discriminate; try contradiction; auto.
  - intros q j m q' j' m' s Q _ _ Q' _ _ X Y. apply row_pushes in X as (-> & k & -> & _ & ->).
    apply row_pushes in Y as (-> & k' & -> & _ & E).
    split; auto. destruct (stream_parts k q Q) as [_ A], (stream_parts k' q' Q') as [_ B]. congruence.
  - intros q j m j' m' s _ _ M _ M' X Y. apply row_pops in X as (X & _), Y as (Y & _). lia.
  - intros q j m s Q J M X. pose proof (row_pops q j m s X) as (MN & k & -> & K & ->). pose proof (round_lt k K) as DP.
    pose proof (Nat.mod_upper_bound (q + 2 ^ k) P ltac:(lia)) as QB. set (r := (q + 2 ^ k) mod P) in *.
    assert (R0 : bruck_row r (S k) 0 = copy (sent k * n) (Buf (hoard r) 0) (Str (k * P + r))).
    { unfold bruck_row. destruct (Nat.ltb_spec k rounds); [reflexivity|lia]. }
    assert (R1 : bruck_row q (S k) m = copy (sent k * n) (Str (k * P + r)) (Buf (hoard q) (2 ^ k * n))).
    { unfold bruck_row. destruct (Nat.ltb_spec k rounds); [|lia]. destruct (Nat.eqb_spec m 0); [lia|reflexivity]. }
    exists r, (S k), 0. rewrite R0, R1. split; auto. split; auto. split; [lia|]. split; [apply in_streams; now left|].
    split; [|split; [reflexivity|split; [lia|]]].
    + rewrite !sum_zero; auto; intros u U; unfold pushed_by, popped_by.
      * destruct (mentions (from (bruck_row q u m)) (k * P + r)) eqn:E; auto.
        apply row_pops in E as (_ & k' & -> & _ & E). exfalso.
        pose proof (Nat.mod_upper_bound (q + 2 ^ k') P ltac:(lia)). destruct (stream_parts k r QB) as [A _],
        (stream_parts k' ((q + 2 ^ k') mod P)) as [B _]; auto.
        assert (k = k') by congruence. lia.
      * destruct (mentions (into (bruck_row r u 0)) (k * P + r)) eqn:E; auto.
        apply row_pushes in E as (_ & k' & -> & _ & E). exfalso.
        destruct (stream_parts k r QB) as [A _], (stream_parts k' r QB) as [B _]. assert (k = k') by congruence. lia.
    + cbn [size copy]. intros e E. unfold got, V. change (0 =? 0) with true.
      rewrite Nat.add_0_r, collected_shift by nia. unfold collected, r.
      now rewrite Nat.add_mod_idemp_l by lia.
  - intros q j m j' m' _ _ M M' E. unfold earlier in E. lia.
  - intros q j m e Q J M E.
    destruct (row_cases q j m) as [ | -> -> |k -> KR -> |k -> KR MN|JR -> ZQ|JR MN ZQ];
    cbn [from size copy nothing map source_at] in *.
    + lia.
    + rewrite held_input; [|exact Q|exact J|exact M|intros; apply not_input]. cbn. rewrite (proj1 (sizes q Q)).
      destruct (Nat.ltb_spec e n); [|lia]. now rewrite collected_small.
    + pose proof (round_lt k KR). rewrite collected_held; auto; [|lia|unfold sent in E; nia]. unfold V.
      change (0 =? 0) with true. now rewrite Nat.add_0_r.
    + unfold got, V. destruct (Nat.eqb_spec m 0); [lia|]. destruct (Nat.ltb_spec k rounds); [reflexivity|lia].
    + replace j with (S rounds) by lia. pose proof rounds_all. rewrite collected_held; auto; [|nia]. unfold V.
      change (0 =? 0) with true. now rewrite Nat.add_0_r.
    + replace j with (S rounds) by lia. pose proof rounds_all. rewrite collected_held; auto; [|nia]. unfold V.
      destruct (Nat.eqb_spec m 0); [lia|].
      destruct (Nat.ltb_spec rounds rounds); [lia|]. cbn [value fold_left]. do 2 f_equal. lia.
Qed.

Theorem bruck_allgather_correct : correct bruck_allgather ac bruck_scratch.
Proof.
  pose proof (rows_flow _ _ _ _ _ _ _ _ _ _ bruck_in_rows) as FL. apply (flow_correct _ _ _ _ _ _ FL).
  intros st H F r d k R DI KL.
  cbn [ranks ac] in R. unfold required in DI. rewrite (proj2 (sizes r R)) in DI.
  destruct (n * P) as [|x] eqn:NP; [contradiction|]. cbn in DI. apply in_map_iff in DI as (b & <- & B).
  apply in_seq in B.
  unfold block in *. cbn [what elems ac d_from d_len d_element d_first d_ranks Nat.add] in *.
  exists (Leaf b k). split; [|unfold alike; cbn; destruct in_order; reflexivity].
  rewrite (final_contents _ _ _ _ _ _ FL) by auto. unfold bruck_allgather.
  assert (NZ : n <> 0) by lia.
  assert (BD : (b * n + k) / n = b /\ (b * n + k) mod n = k).
  { split; [rewrite Nat.div_add_l, Nat.div_small by lia; lia|]. rewrite Nat.add_comm, Nat.mod_add,
    Nat.mod_small by lia. reflexivity. }
  destruct BD as [BD BM]. assert (FITS : b * n + k < P * n) by nia. pose proof rounds_all as RA.
  destruct (Nat.eq_dec r 0) as [->|RZ].
  - pose proof (collected_before 0 rounds (count (rows P (S (S rounds)) 2 bruck_row bruck_ports)) (b * n + k) R (le_n
    _)) as C.
    change (hoard 0) with 1 in C. rewrite C.
    + unfold collected. rewrite BD, BM. cbn [Nat.add]. rewrite Nat.mod_small by lia. reflexivity.
    + apply Nat.lt_le_incl, index_lt; auto.
    + auto.
    + intros j m t J M _ I. destruct (Nat.le_gt_cases j rounds); auto. exfalso. unfold bruck_row in I.
      destruct j as [|h]; [lia|].
      destruct (Nat.ltb_spec h rounds); [lia|]. change (0 =? 0) with true in I. contradiction.
    + nia.
  - assert (RH : bruck_row r (S rounds) 0 = copy ((P - r) * n) (Buf (hoard r) 0) (Buf 1 (r * n)) /\
      bruck_row r (S rounds) 1 = copy (r * n) (Buf (hoard r) ((P - r) * n)) (Buf 1 0)).
    { unfold bruck_row. destruct (Nat.ltb_spec rounds rounds); [lia|]. destruct (Nat.eqb_spec r 0); [lia|].
      split; reflexivity. }
    destruct RH as [RH RL]. destruct (Nat.lt_ge_cases b r) as [BR|BR].
    + change (b * n + k) with (0 + (b * n + k)).
      rewrite (last_written P (S (S rounds)) 2 bruck_row bruck_ports ac V _ r (S rounds) 1 1 0 (b * n + k)); auto;
      try lia.
      * unfold V. change (1 =? 0) with false. destruct (Nat.ltb_spec rounds rounds); [lia|].
        rewrite collected_shift by auto. rewrite BD, BM. do 2 f_equal.
        replace (r + (P - r) + b) with (b + 1 * P) by lia. rewrite Nat.mod_add, Nat.mod_small by lia. reflexivity.
      * apply index_lt; auto.
      * rewrite RL. intros t [I|[]]. congruence.
      * rewrite RL. now left.
      * rewrite RL. cbn [size copy]. nia.
      * intros j' m' J' M' E. unfold earlier in E. lia.
    + replace (b * n + k) with (r * n + ((b - r) * n + k)) by nia.
      rewrite (last_written P (S (S rounds)) 2 bruck_row bruck_ports ac V _ r (S rounds) 0 1 (r * n) ((b - r) * n + k));
      auto; try lia.
      * unfold V. change (0 =? 0) with true. rewrite Nat.add_0_r, (Nat.add_comm _ k), collected_shift by auto.
        rewrite (Nat.div_small k), (Nat.mod_small k) by lia. do 2 f_equal. rewrite Nat.add_0_r.
        replace (r + (b - r)) with b by lia. apply Nat.mod_small. lia.
      * apply index_lt; auto.
      * rewrite RH. intros t [I|[]]. congruence.
      * rewrite RH. now left.
      * rewrite RH. cbn [size copy]. nia.
      * intros j' m' J' M' E _ t I. assert (j' = S rounds /\ m' = 1) as [-> ->] by (unfold earlier in E; lia).
        rewrite RL in *. destruct I as [I|[]]. injection I as <-. cbn [size copy]. right. nia.
Qed.

End Bruck.
