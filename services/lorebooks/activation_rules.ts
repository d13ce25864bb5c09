/** Inclusion groups: of entries that share a group's name only one goes into a prompt. */
import type { ActivationReason } from "./activation.ts";
import type { ScanEntry } from "./scan_entries.ts";

/** An entry that fires. */
export interface Candidate {
  entry: ScanEntry;
  reason: ActivationReason;
  /** How many of its keys were found. */
  score: number;
  isSticky?: true;
}

/**
 * Leaves one candidate a group: one that is sticky, else the one that overrides by the highest order, else one by chance
 * in the proportion of the weights. Where an entry asks for scoring, those with fewer keys found go first.
 *
 * @param active Entries that are in already; their groups are taken.
 */
export function chooseInGroups(
  candidates: readonly Candidate[],
  active: readonly ScanEntry[],
  random: (name: string) => number,
): { chosen: Candidate[]; dropped: Candidate[] } {
  const dropped = new Set<Candidate>();
  const taken = new Set(active.flatMap(({ groups }) => groups));
  const groups = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    for (const name of new Set(candidate.entry.groups)) {
      const members = groups.get(name);
      if (members === undefined) groups.set(name, [candidate]);
      else members.push(candidate);
    }
  }
  for (const [name, all] of groups) {
    const members = all.filter((member) => !dropped.has(member));
    const winner = taken.has(name) ? undefined : winnerOf(withBestScore(members), () => random(`group/${name}`));
    for (const member of members) if (member !== winner) dropped.add(member);
  }
  return { chosen: candidates.filter((member) => !dropped.has(member)), dropped: [...dropped] };
}

function withBestScore(members: Candidate[]): Candidate[] {
  if (!members.some(({ entry }) => entry.useGroupScoring)) return members;
  const best = members.reduce((most, { score }) => Math.max(most, score), 0);
  return members.filter(({ entry, score, isSticky }) => isSticky || !entry.useGroupScoring || score === best);
}

function winnerOf(members: Candidate[], random: () => number): Candidate | undefined {
  if (members.length <= 1) return members[0];
  const sticky = members.find(({ isSticky }) => isSticky);
  if (sticky !== undefined) return sticky;
  const overriding = members.filter(({ entry }) => entry.groupOverride);
  if (overriding.length > 0) return overriding.reduce((a, b) => b.entry.order > a.entry.order ? b : a);
  let left = random() * members.reduce((sum, { entry }) => sum + entry.groupWeight, 0);
  return members.find(({ entry }) => (left -= entry.groupWeight) < 0) ?? members[0];
}
