/** One guard of the rules, removed. */
export interface Mutant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly guard: string;
  /** Replacements of exact text, each of which occurs once in its file of packages/core/src. */
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
}

function mutant(
  name: string,
  guard: string,
  ...edits: readonly (readonly [file: string, from: string, to: string])[]
): Mutant {
  return { name, guard, edits: edits.map(([file, from, to]) => ({ file, from, to })) };
}

export const MUTANTS: readonly Mutant[] = [
  // What a member accepts.
  mutant('every-entry-is-vouched-for', 'a new key needs a valid voucher', [
    'ring/certificates.ts',
    'return entry.ancestors?.ids.some((id) => vouchers.has(id)) === true;',
    'return signers.size >= 0 || entry.ancestors?.ids.some((id) => vouchers.has(id)) === true;',
  ]),
  mutant('a-voucher-is-enough', 'a new key names the known one that vouches for it', [
    'ring/certificates.ts',
    'return entry.ancestors?.ids.some((id) => vouchers.has(id)) === true;',
    'return vouchers.size > 0;',
  ]),
  mutant('ancestors-are-not-proved', 'a key certifies its own ancestors', [
    'ring/learn.ts',
    'const own = { ...entry, ancestors: key.ancestors };',
    'const own = entry;',
  ]),
  mutant('any-key-revokes-any', 'a revocation is certified by the key itself or by a newer one', [
    'ring/certificates.ts',
    '!signer.revoked && isNewer(signer, key));',
    '!signer.revoked);',
  ]),
  mutant('a-revoked-key-certifies', 'a revoked key certifies only its own revocation', [
    'ring/certificates.ts',
    '!signer.revoked && isNewer(signer, key));',
    'isNewer(signer, key));',
  ]),
  mutant('uncertified-revocations', 'a revocation without a certificate is ignored', [
    'ring/learn.ts',
    'if (!isCertified(ring, key, claim, signers)) return key;',
    'if (claim.by.size > 99) return key;',
  ]),
  mutant('revocations-are-not-learned', 'a certified revocation is adopted', [
    'ring/learn.ts',
    'if (!isCertified(ring, key, claim, signers)) return key;',
    'if (isCertified(ring, key, claim, signers)) return key;',
  ]),
  mutant('revocations-of-others-certify-nothing', 'a newer key certifies a revocation', [
    'ring/certificates.ts',
    'return id === key.id || (!signer',
    'return id === key.id && (!signer',
  ]),
  mutant('newer-by-nothing', 'newer is by (created, id)', [
    'ring/certificates.ts',
    'return a.created > b.created || (a.created === b.created && a.id > b.id);',
    'return a.created < b.created || (a.created === b.created && a.id > b.id);',
  ]),
  mutant('created-by-the-clock', "a new key's created is later than every known one", [
    'ring/schedule.ts',
    'Math.max(floorSecond(nowMs), newestMs + MS)',
    'Math.max(floorSecond(nowMs), Math.min(newestMs, 0))',
  ]),
  mutant('the-live-alone-vouch', 'a publisher also vouches with revoked and expired keys', [
    'ring/certificates.ts',
    '(signer) => signer.isLeft !== true && isNewer(entry, signer) && !known.has(signer.id),\n  );',
    '(signer) => !signer.revoked && signer.isLeft !== true && isNewer(entry, signer) && !known.has(signer.id),\n  ).slice(-1);',
  ]),
  mutant('nobody-vouches', 'a published key has vouchers', [
    'ring/certificates.ts',
    'slice(0, MAX_VOUCHERS - known.size)',
    'slice(0, 0 * known.size)',
  ]),
  mutant('junk-wraps-are-taken', 'a wrap needs a valid MAC', [
    'ring/certificates.ts',
    'return timingSafeEqual(wrap.mac, wrapMacOf(ring, wrap, own));',
    'return wrap.mac.length > 0 || timingSafeEqual(wrap.mac, wrapMacOf(ring, wrap, own));',
  ]),
  mutant('two-lineages', 'two roots are two lineages', [
    'member/learn-anew.ts',
    'throw new LineageError(',
    'if (known.keys.length > 0) return known;\n    throw new LineageError(',
  ]),
  mutant('starts-anew', 'a member starts again only for a new ring', ['member/learn-anew.ts', 'isYoung && ', '']),
  mutant('goes-over-to-a-younger-ring', 'a member starts again only for an older ring', [
    'member/learn-anew.ts',
    ' && isOlder',
    '',
  ]),
  mutant('never-goes-over', 'a young ring changes to the older one', [
    'member/learn-anew.ts',
    'if (root?.ancestors?.ids.length !== 0) return false;',
    'if (root?.ancestors?.ids.length !== 99) return false;',
  ]),
  mutant('learned-for-a-token', 'facts that were read only for a token are checked again', [
    'member/sync.ts',
    'isWhole && !isCaused(options) ? document',
    'isWhole ? document',
  ]),
  mutant('leaves-an-old-ring', 'a member leaves only a ring whose oldest known key names no ancestor', [
    'member/learn-anew.ts',
    'if (root?.ancestors?.ids.length !== 0) return false;',
    'if (root === undefined) return false;',
  ]),
  mutant('keeps-what-hangs-together-with-nothing', 'linked keys without a usable one are not adopted', [
    'member/learn-anew.ts',
    'return createSnapshot(known.keys.filter((key) => isTombstone(key) || one.includes(key.id)));',
    'return known;',
  ]),
  mutant('past-of-another-ring', 'a key that expired in another ring vouches for nothing in this one', [
    'member/view.ts',
    'this.#sealedWith = undefined;\n    this.#past.clear();',
    'this.#sealedWith = undefined;',
  ]),
  mutant('left-keys-vouch', 'keys of a ring that was left vouch for nothing', [
    'ring/certificates.ts',
    'signer.isLeft !== true && ',
    '',
  ]),
  mutant('certifies-times-that-are-not-proved', 'no other key revokes a key that was never unwrapped', [
    'ring/written-document.ts',
    'if (isTombstone(key)) {\n    // The times of a key that was never unwrapped',
    'if (signers.size < 0) {\n    // The times of a key that was never unwrapped',
  ]),
  mutant('judged-oldest-first', 'revocations are checked newest first', [
    'ring/learn.ts',
    'const entries = document.entries.toSorted(newestFirst);',
    'const entries = document.entries.toSorted((a, b) => newestFirst(b, a));',
  ]),
  mutant(
    'who-missed-a-revocation-is-not-told',
    'a full document keeps the revocation of a key that an attacker wrote as live',
    [
      'ring/written-document.ts',
      'if (there !== undefined && there.revoked === undefined) return 4;',
      'if (there !== undefined && there.revoked === undefined) return 0;',
    ],
  ),
  mutant(
    'an-expired-key-is-believed-in-a-full-document',
    'a full document drops keys that only expired keys certify as revoked before any other',
    [
      'ring/written-document.ts',
      'return (isDoubtful ? 0 : 2) + (there === undefined ? 0 : 1);',
      'return (isDoubtful ? 2 : 2) + (there === undefined ? 0 : 1);',
    ],
  ),
  mutant('young-revocations-leave', 'a revocation stays in the document until every member has read it', [
    'member/writer.ts',
    'revocation !== undefined && Math.abs(wallMs - revocation.at) > readMs;',
    'revocation !== undefined;',
  ]),
  // The format.
  mutant(
    'unknown-members-are-taken',
    'an unknown property is refused',
    ['ring/document.ts', "if (Object.keys(unknown).length > 0) throw corrupt('an unknown property');", ''],
    [
      'ring/document.ts',
      "if (encodeDocument(document).length !== text.length) throw corrupt('not in canonical form');",
      '',
    ],
  ),
  mutant('any-spelling', 'a document has one spelling', [
    'ring/document.ts',
    "if (encodeDocument(document).length !== text.length) throw corrupt('not in canonical form');",
    '',
  ]),
  mutant('any-number-of-keys', 'a document has at most 64 keys', [
    'ring/document.ts',
    'if (keys.length > MAX_RING_KEYS)',
    'if (keys.length > 99 * MAX_RING_KEYS)',
  ]),
  mutant('any-life', 'a key lives for five years at most', [
    'ring/document.ts',
    'if (times.opensUntil - times.created > MAX_LIFE_MS) throw',
    'if (times.opensUntil - times.created > 99 * MAX_LIFE_MS) throw',
  ]),
  mutant('any-number-of-wraps', 'a key has at most 16 wraps', [
    'ring/document.ts',
    'wraps.length > MAX_WRAPS) throw',
    'wraps.length > 99 * MAX_WRAPS) throw',
  ]),
  mutant('carries-all', 'at most 4 keys are carried', ['ring/snapshot.ts', 'MAX_CARRIED = 4', 'MAX_CARRIED = 64']),
  // What is kept and written.
  mutant('lacking-live-keys', 'a document that lacks live keys changes nothing', [
    'ring/learn.ts',
    'const keys = new Map(known.byId);',
    'const keys = new Map([...known.byId].filter(([id]) => document.entries.some((entry) => entry.id === id)));',
  ]),
  mutant('nothing-is-repaired', 'facts that a document lacks are written', [
    'member/repairs.ts',
    'if (!lacks(read, known, judgement)) return false;',
    'if (read.ring !== undefined) return false;',
  ]),
  mutant('lost-revocations-stay-lost', 'a revocation that a document lacks is written', [
    'ring/written-document.ts',
    'lacksRevocation(ring, key, entry, signers) ||\n',
    '',
  ]),
  mutant('revocation-lost-on-merge', 'a writer writes every revocation that it knows', [
    'ring/written-document.ts',
    'const mine = key.revocation;',
    'const mine = key.authenticator === undefined ? key.revocation : undefined;',
  ]),
  mutant('repairs-without-pause', 'at most one repairing write per R per member', [
    'member/repairs.ts',
    'this.#o.policy.refreshEverySeconds * MS - sinceLast',
    'Math.min(sinceLast, 0)',
  ]),
  mutant('corrupt-by-id', 'corrupt is remembered per (id, wrap)', [
    'kms/corrupt-wraps.ts',
    'const facts = [entry.id, ...timesOf(entry), provider, keyId, base64url(wrapped), signed];',
    'const facts = [entry.id, timesOf(entry).length, provider, keyId.length > 0, wrapped.length > 0, signed];',
  ]),
  mutant('refused-junk-trips', 'a refusal counts only as the answer to the check of a held key', [
    'member/sync.ts',
    '    if (refused.length > 0 && options.forToken !== true)',
    "    if (refused.length > 0) this.#o.view.limits.failed('disabled', this.#o.view.now());\n    if (refused.length > 0 && options.forToken !== true)",
  ]),
  // Revocations are never refused.
  mutant('revocation-needs-the-kms', 'a revocation is not refused because the KMS is down', [
    'member/writer.ts',
    'if (error instanceof KeyWrapperError) return undefined;',
    'if (error === undefined) return undefined;',
  ]),
  mutant('revocation-needs-the-clock', 'a revocation is not refused because the time is unknown', [
    'member/writer.ts',
    'const ids = new Set(meant.map(({ id }) => id));',
    'this.#checkClock();\n    const ids = new Set(meant.map(({ id }) => id));',
  ]),
  mutant('revoked-keys-come-back', 'a revoked key is not unwrapped again after its end', [
    'ring/learn.ts',
    'else if (vouched && (isLink || !(isKnownAsRevoked || isOver))) wanted.push(entry);',
    'else if (vouched && (isLink || !isKnownAsRevoked)) wanted.push(entry);',
  ]),
  mutant('no-successor-later', 'a ring without a key to seal with gets one', [
    'member/keeper.ts',
    'if (neededKey === undefined) return;',
    'if (neededKey === undefined || this.#isCheckWanted || !this.#isCheckWanted) return;',
  ]),
  mutant('no-look-ahead', 'a ring whose last key expires soon gets one before', [
    'member/writer.ts',
    'if (leftMs > emergencyMs + readMs ||',
    'if (leftMs > 0 ||',
  ]),
  mutant('everybody-makes-the-key', 'one member makes the key of a ring that has none', [
    'member/founding.ts',
    'if (wait > 0) return wait;',
    '',
  ]),
  mutant('rotations-fill-the-ring', 'requested rotations stop at 48 keys', [
    'ring/policy.ts',
    'MAX_KEYS_TO_ROTATE = 48',
    'MAX_KEYS_TO_ROTATE = 64',
  ]),
  // KMS checks, reads, and the kill switch.
  mutant('proof-pretended', 'only an unwrap that returned the right bytes is a KMS check that passed', [
    'member/kms-check.ts',
    'if (error instanceof KeyWrapperError) view.limits.failed(error.kind, view.now());',
    'if (error instanceof KeyWrapperError) view.limits.kmsCheckPassed(view.now());',
  ]),
  mutant('seals-without-a-read', 'sealing ends without a read of the ring', [
    'member/limits.ts',
    'earlier(this.#kmsCheckUntil, this.#readUntil)',
    'earlier(this.#kmsCheckUntil, this.#kmsCheckUntil)',
  ]),
  mutant('seals-without-a-proof', 'sealing ends without a KMS check', [
    'member/limits.ts',
    'earlier(this.#kmsCheckUntil, this.#readUntil)',
    'earlier(this.#readUntil, this.#readUntil)',
  ]),
  mutant('opens-for-ever', 'unsealing ends without the KMS and without the store', [
    'member/limits.ts',
    'if (this.#unsealUntil === undefined || hasPassed(this.#unsealUntil, now)) return false;',
    'if (this.#unsealUntil === undefined) return false;',
  ]),
  mutant('kill-switch-never-trips', 'three refusals stop sealing', [
    'member/kill-switch.ts',
    'trippedAt: tripped ? now : undefined',
    'trippedAt: tripped && nowMs < 0 ? now : undefined',
  ]),
  mutant('kill-switch-leaves-opening', 'unsealing stops S + R after sealing', [
    'member/limits.ts',
    'if (trippedAt === undefined) return true;',
    'if (trippedAt !== null) return true;',
  ]),
  mutant('one-stray-refusal', 'a single refusal does not stop a fleet', [
    'member/kill-switch.ts',
    'REFUSALS_TO_STOP = 3',
    'REFUSALS_TO_STOP = 1',
  ]),
  mutant('refusals-without-a-pause', 'refusals count 8 s apart', [
    'member/kill-switch.ts',
    'LEAST_SPACING_MS: number = 8_000',
    'LEAST_SPACING_MS: number = 0',
  ]),
  // The times of a key.
  mutant('opens-until-without-skew', 'opensUntil = sealsUntil + tokenLifetime + 2 S', [
    'ring/schedule.ts',
    ' + 2 * skew);',
    ');',
  ]),
  mutant('propagation-shorter', 'a planned key waits for the propagation time', [
    'ring/schedule.ts',
    'activates = ceilSecond(base + policy.propagationSeconds * MS);',
    'activates = ceilSecond(base + (policy.propagationSeconds - 3_000) * MS);',
  ]),
  mutant(
    'an-older-key-seals-again',
    'no member seals with an older key than before',
    ['ring/snapshot.ts', 'if (notBefore !== undefined && compareAge(key, notBefore) < 0) break;', ''],
    ['ring/snapshot.ts', 'key === notBefore ? Math.max(nowMs, key.activates) : nowMs', 'nowMs'],
  ),
  mutant('seals-too-early', 'a key seals from activates on', [
    'ring/schedule.ts',
    'return !key.revoked && key.activates <= nowMs && nowMs < key.sealsUntil;',
    'return !key.revoked && nowMs < key.sealsUntil;',
  ]),
  mutant(
    'opens-too-long',
    'a key unseals until opensUntil',
    ['ring/schedule.ts', 'return !key.revoked && nowMs < key.opensUntil;', 'return !key.revoked;'],
    [
      'member/view.ts',
      'this.wallMs(now) >= removableFrom(key, this.#o.policy)',
      'this.wallMs(now) >= 2 * removableFrom(key, this.#o.policy)',
    ],
  ),
  mutant(
    'revoked-keys-open',
    'a revoked key unseals nothing',
    ['ring/schedule.ts', 'return !key.revoked && nowMs < key.opensUntil;', 'return nowMs < key.opensUntil;'],
    [
      'ring/learn.ts',
      'return { ...key, revoked: true, held: undefined, revocation: claim };',
      'return { ...key, revoked: true, revocation: claim };',
    ],
  ),
  mutant(
    'revoked-keys-seal',
    'a revoked key seals nothing',
    [
      'ring/schedule.ts',
      'return !key.revoked && key.activates <= nowMs && nowMs < key.sealsUntil;',
      'return key.activates <= nowMs && nowMs < key.sealsUntil;',
    ],
    [
      'ring/learn.ts',
      'return { ...key, revoked: true, held: undefined, revocation: claim };',
      'return { ...key, revoked: true, revocation: claim };',
    ],
  ),
  mutant('late-keys-seal-at-once', 'a key that arrives late seals late', [
    'member/view.ts',
    'return counts ? now.steadyMs + lateWaitMs(policy) : 0;',
    'return counts ? 0 * lateWaitMs(policy) : 0;',
  ]),
  mutant('late-publishers-publish', 'a publisher that was late publishes nothing', [
    'member/writer.ts',
    'return ageMs(began, this.#o.view.now()) > longestDelayMs(entry, this.#o.policy);',
    'return ageMs(began, this.#o.view.now()) > longestDelayMs(entry, this.#o.policy) * 1_000;',
  ]),
  mutant('ready-without-a-read', 'a member is not ready when others may seal with unknown keys', [
    'member/limits.ts',
    'return this.#complete !== undefined && ageMs(this.#complete, now) <= (propagationSeconds - clockSkewSeconds) * MS;',
    'return this.#complete !== undefined && propagationSeconds > clockSkewSeconds && now.wallMs > 0;',
  ]),
  mutant('ready-without-the-newest', 'a ready member holds every key that others may have sealed a live token with', [
    'ring/snapshot.ts',
    'return isUsed && !carried.some(isMissed);',
    'return isUsed || carried.some(isMissed);',
  ]),
  mutant('ready-without-a-covered-one', 'tokens of a key that was not unwrapped remain valid when a newer one seals', [
    'ring/snapshot.ts',
    'nowMs < lastSealMs + tokensLiveMs;',
    'nowMs < lastSealMs && tokensLiveMs > 0;',
  ]),
  // Clocks.
  mutant(
    'publishes-at-any-time',
    'nothing is published by an unconfirmed time',
    [
      'member/writer.ts',
      "if (trouble !== undefined) throw new RingStoreError('unavailable', `nothing is published: ${trouble}`);",
      '',
    ],
    ['member/founding.ts', 'if (trouble !== undefined) throw', "if (trouble === '') throw"],
    ['member/writer.ts', 'this.#o.view.clockTrouble(now) !== undefined || ', ''],
  ),
  mutant(
    'removes-at-any-time',
    'nothing is removed by an unconfirmed time',
    ['member/view.ts', 'this.#o.policy) && this.clockTrouble(now) === undefined;', 'this.#o.policy);'],
    ['member/view.ts', 'if (this.clockTrouble(now) !== undefined) return;', ''],
  ),
  mutant('every-step-is-believed', 'a step of the clock is unconfirmed until a date fits', [
    'member/ring-clock.ts',
    'if ((!this.#isDated && this.#dates.size > 0) || this.#wasSuspended(now)) {',
    'if (this.#dates.size >= 0 || this.#wasSuspended(now)) {',
  ]),
  mutant('suspensions-are-steps', 'a date confirms a step', [
    'member/ring-clock.ts',
    'if (Math.abs(now.wallMs - ms) <= this.#toleratedMs) this.#believe(now, true);',
    'if (Math.abs(now.wallMs - ms) <= this.#toleratedMs && !this.#stepped) this.#believe(now, true);',
  ]),
  mutant('both-dates-must-fit', 'one service whose date disagrees does not stop a member', [
    'member/ring-clock.ts',
    'off.some(({ ms }) => this.#isTolerated(ms))',
    'off.every(({ ms }) => this.#isTolerated(ms))',
  ]),
  mutant('learned-once', 'facts that were checked by another time are checked again', [
    'member/sync.ts',
    'document === this.#learnedFrom && Math.abs(this.#timeShift() - this.#learnedShift) <= MS',
    'document === this.#learnedFrom',
  ]),
  // Absence.
  mutant('creates-at-once', 'a starting member creates a ring after createAfter', [
    'member/start.ts',
    'policy.createAfterSeconds * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;',
    '2 * MS - ageMs(absentSince, now) : ABSENT_POLL_MS;',
  ]),
  mutant('absence-is-left', 'a running member writes its ring to an empty store', [
    'member/sync.ts',
    'this.repairs.consider(document, now, isForeign);\n    if (failure',
    'if (stored !== undefined) this.repairs.consider(document, now, isForeign);\n    if (failure',
  ]),
  mutant('junk-is-left', 'a running member overwrites an invalid document', [
    'member/sync.ts',
    'this.repairs.consider(document, now, isForeign);\n    if (failure',
    'if (!isForeign) this.repairs.consider(document, now, isForeign);\n    if (failure',
  ]),
  // Work that others can cause.
  mutant('a-read-for-every-token', 'at most one read per missRefresh', [
    'member/caused-reads.ts',
    'const isDue = this.#nextAt === undefined || hasPassed(this.#nextAt, now);',
    'const isDue = this.#nextAt === undefined || this.#nextAt.wallMs > 0;',
  ]),
  mutant(
    'a-proof-for-every-miss',
    'an unknown key id causes no call to the KMS',
    [
      'member/caused-reads.ts',
      'if (this.#isOverdue(view.now())) return this',
      'if (view.now() !== undefined) return this',
    ],
    [
      'member/keeper.ts',
      'pass: (options) => this.#pass(options),',
      'pass: (options) => {\n        this.#isCheckWanted = true;\n        return this.#pass(options);\n      },',
    ],
  ),
  mutant(
    'a-pass-for-every-notification',
    'notifications are coalesced, missRefresh apart',
    ['member/caused-reads.ts', 'if (view.isClosed || this.#isPushPending) return;', 'if (view.isClosed) return;'],
    [
      'member/caused-reads.ts',
      ': msUntil(next, view.now()) + jitterMs;',
      ': 0 * msUntil(next, view.now()) + jitterMs / 99;',
    ],
  ),
];
