(** A checker of races by the facts of a certificate. The rules are those of docs/certificates.md. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Unisono Require Import Model Order Determined Maps OrderCheck.

#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments get : simpl never.
#[local] Arguments set : simpl never.

(** One fact of a certificate about an instruction J: [J<=I] if [c_before], otherwise [J<I] or [J<I@N]. *)
Record claim := { c_before : bool; c_via : nat; c_fact : option nat }.

(** An access of memory: elements [a_from] to [a_to] of a buffer of a node. *)
Record access := { a_lane : nat; a_id : nat; a_buf : nat; a_from : nat; a_to : nat; a_write : bool }.

(** [known]: of two lanes, one more than the instruction of the second lane that is over when the first continues. A
    fact [(j, x, b)] says that [x] is over when [j] starts, or only when it ends if [b] is false. *)
Record knowledge := {
  known : map (map nat); nfacts : nat; facts : map (nat * nat * bool); seen : map (list access) }.

Section Race.
Variable sc : schedule.
Variable h : hints.
Notation instr_of := (ins sc).

Definition learn (a x : nat) (k : map (map nat)) : map (map nat) :=
  let row := get empty k a in let b := lane (instr_of x) in
  set k a (set row b (Nat.max (get 0 row b) (S x))).

Definition meets_at_start (j via : nat) (st : bool) (s : nat) : bool :=
  let a := push_pos h via s in let b := a + len (instr_of via) in let p := pop_pos h j s in
  pops (instr_of j) s && (S p =? b) || pops (instr_of j) s && st && (a <=? p) && (p <? b).

Definition meets_at_end (j via : nat) (st : bool) (s : nat) : bool :=
  let a := push_pos h via s in let b := a + len (instr_of via) in let q := pop_pos h j s + len (instr_of j) in
  pops (instr_of j) s && (b <=? q) || pops (instr_of j) s && st && (a <? q).

(** A fact about [via] holds when [j] starts ([Some true]), when it ends ([Some false]), or not ([None]). *)
Definition carried (j via : nat) (st : bool) : option bool :=
  if existsb (Nat.eqb via) (after (instr_of j)) then Some true
  else let ss := streams_of (sinks (instr_of via)) in
    if existsb (meets_at_start j via st) ss then Some true
    else if existsb (meets_at_end j via st) ss then Some false else None.

Definition base (k : knowledge) (c : claim) : option (nat * nat * bool) :=
  match c_fact c with
  | Some n => if (0 <? n) && (n <=? nfacts k) && negb (c_before c) then Some (get (0, 0, false) (facts k) n) else None
  | None => if c_before c
      then match c_via c with
        | 0 => None
        | S p => if lane (instr_of p) =? lane (instr_of (c_via c)) then Some (c_via c, p, true) else None
        end
      else Some (c_via c, c_via c, false)
  end.

(** The instruction that a claim about [j] shows to be over, and whether it is when [j] starts. *)
Definition derive (k : knowledge) (j : nat) (c : claim) : option (nat * bool) :=
  let via := c_via c in
  if via <? count sc then
    match base k c with
    | Some (about, x, st) =>
        if (lane (instr_of about) =? lane (instr_of via)) && (about <=? via) then
          match carried j via (st || (about <? via)) with Some b => Some (x, b) | None => None end
        else None
    | None => None
    end
  else None.

Definition add_fact (k : knowledge) (j x : nat) (b : bool) : knowledge :=
  {| known := if b then learn (lane (instr_of j)) x (known k) else known k; nfacts := S (nfacts k);
     facts := set (facts k) (S (nfacts k)) (j, x, b); seen := seen k |}.

(** Takes over all claims about [j]; returns the instructions that are over only when it ends. *)
Fixpoint take_claims (k : knowledge) (j : nat) (cs : list claim) (at_end : list nat) : option (knowledge * list nat) :=
  match cs with
  | [] => Some (k, at_end)
  | c :: r => match derive k j c with
    | Some (x, b) => take_claims (add_fact k j x b) j r (if b then at_end else x :: at_end)
    | None => None
    end
  end.

Definition learn_all (a : nat) (xs : list nat) (m : map (map nat)) : map (map nat) :=
  fold_left (fun m x => learn a x m) xs m.

Fixpoint accesses (i : nat) (w : bool) (os : list operand) : list access :=
  match os with
  | [] => []
  | Buf b s :: r => {| a_lane := lane (instr_of i); a_id := i; a_buf := b; a_from := s;
      a_to := s + len (instr_of i); a_write := w |} :: accesses i w r
  | Str _ :: r => accesses i w r
  end.

Definition all_accesses (i : nat) : list access :=
  accesses i false (sources (instr_of i)) ++ accesses i true (sinks (instr_of i)).

Definition no_race (m : map (map nat)) (a r : access) : bool :=
  (a_lane a =? a_lane r) || negb (a_buf a =? a_buf r) || (a_to a <=? a_from r) || (a_to r <=? a_from a) ||
  negb (a_write a || a_write r) || (a_id r <? get 0 (get empty m (a_lane a)) (a_lane r)).

(** A later access [r] of the same lane makes it unnecessary to keep [a]. *)
Definition replaces (r a : access) : bool :=
  (a_lane a =? a_lane r) && (a_buf a =? a_buf r) && (a_from r <=? a_from a) && (a_to a <=? a_to r) &&
  (negb (a_write a) || a_write r) && (a_id a <=? a_id r).

Definition keep (l : list access) (r : access) : list access := r :: filter (fun a => negb (replaces r a)) l.

Definition race_step (k : knowledge) (j : nat) (cs : list claim) : option knowledge :=
  let x := instr_of j in
  let k1 := {| known := learn_all (lane x) (after x) (known k); nfacts := nfacts k; facts := facts k; seen := seen k |} in
  match take_claims k1 j cs [] with
  | None => None
  | Some (k2, at_end) =>
      let here := if shared h (node x) then get [] (seen k2) (node x) else [] in
      let mine := if shared h (node x) then all_accesses j else [] in
      if forallb (fun a => forallb (no_race (known k2) a) here) mine then
        Some {| known := learn_all (lane x) at_end (known k2); nfacts := nfacts k2; facts := facts k2;
          seen := if shared h (node x) then set (seen k2) (node x) (fold_left keep mine here) else seen k2 |}
      else None
  end.

Fixpoint run_races (k : knowledge) (steps : list (nat * list claim)) : bool :=
  match steps with
  | [] => true
  | (j, cs) :: r => match race_step k j cs with Some k' => run_races k' r | None => false end
  end.

Definition slices_ok (i : nat) : bool :=
  let x := instr_of i in
  forallb (fun o => forallb (fun p => match o, p with
    | Buf b s, Buf c t => negb (b =? c) || (s =? t) || (s + len x <=? t) || (t + len x <=? s)
    | _, _ => true
    end) (sinks x ++ sources x)) (sinks x).

(** The checker: every pair of accesses that clash is ordered, and slices of one instruction do not overlap. *)
Definition check_races (steps : list (nat * list claim)) : bool :=
  all_below (count sc) slices_ok && run_races {| known := empty; nfacts := 0; facts := empty; seen := empty |} steps.

End Race.
