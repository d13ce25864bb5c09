import { expect, test } from "vitest";
import type { SoundFrame } from "../../../static/src/speech/microphone.ts";
import { VoiceActivity, type VoiceEvent } from "../../../static/src/speech/voice_activity.ts";

const QUIET_DB = -60;
const VOICE_DB = -25;

/** Feeds sound of a level for a duration and returns the events. */
function feed(activity: VoiceActivity, db: number, ms: number): VoiceEvent[] {
  const level = 10 ** (db / 20);
  const frame = (): SoundFrame => ({ samples: new Int16Array(320).fill(level * 32_767), level });
  return Array.from({ length: ms / 20 }, () => activity.add(frame())).filter((event) => event !== undefined);
}

function secondsOf(event: VoiceEvent | undefined): number {
  if (event?.kind !== "ended") throw new Error("No speech ended");
  return event.samples.length / 16_000;
}

test("ends speech after a pause, and includes what came just before it", () => {
  const activity = new VoiceActivity({ pauseMs: 700 });
  expect(feed(activity, QUIET_DB, 1000)).toEqual([]);
  expect(feed(activity, VOICE_DB, 1500).map(({ kind }) => kind)).toEqual(["started"]);
  expect(feed(activity, QUIET_DB, 600)).toEqual([]);
  const [ended] = feed(activity, QUIET_DB, 200);
  const seconds = secondsOf(ended);
  // 0.3 to 0.6 s before it, 1.5 s of speech, 0.7 s of silence.
  expect(seconds).toBeGreaterThan(2.4);
  expect(seconds).toBeLessThan(2.9);
});

test("a pause between words doesn't end speech", () => {
  const activity = new VoiceActivity({ pauseMs: 700 });
  feed(activity, QUIET_DB, 500);
  feed(activity, VOICE_DB, 800);
  expect(feed(activity, QUIET_DB, 500)).toEqual([]);
  expect(feed(activity, VOICE_DB, 800)).toEqual([]);
  expect(feed(activity, QUIET_DB, 800).map(({ kind }) => kind)).toEqual(["ended"]);
});

test("ignores a click, and drops a noise that is too short to be speech", () => {
  const activity = new VoiceActivity();
  feed(activity, QUIET_DB, 500);
  expect(feed(activity, VOICE_DB, 60)).toEqual([]);
  expect(feed(activity, QUIET_DB, 1000)).toEqual([]);
  feed(activity, VOICE_DB, 160);
  expect(feed(activity, QUIET_DB, 1000).map(({ kind }) => kind)).toEqual(["dropped"]);
});

test("gets used to the noise of the room", () => {
  const activity = new VoiceActivity();
  feed(activity, QUIET_DB, 500);
  // A fan starts slowly.
  for (let db = QUIET_DB; db < -38; db++) expect(feed(activity, db, 700)).toEqual([]);
  expect(feed(activity, -38, 20_000)).toEqual([]);
  expect(feed(activity, -15, 400).map(({ kind }) => kind)).toEqual(["started"]);
});

test("while the page speaks, only a louder voice counts as speech", () => {
  const activity = new VoiceActivity();
  feed(activity, QUIET_DB, 1000);
  activity.isPageSounding = true;
  // The echo rises within a syllable.
  feed(activity, -45, 200);
  expect(feed(activity, -35, 10_000)).toEqual([]);
  expect(feed(activity, -30, 5_000)).toEqual([]);
  expect(feed(activity, -12, 600).map(({ kind }) => kind)).toEqual(["started"]);
});

test("cuts speech that doesn't end", () => {
  const activity = new VoiceActivity({ maxMs: 10_000 });
  feed(activity, QUIET_DB, 500);
  const [started, ended] = feed(activity, VOICE_DB, 11_000);
  expect(started?.kind).toBe("started");
  expect(secondsOf(ended)).toBe(10);
});

test("returns unfinished speech once, and nothing in silence", () => {
  const activity = new VoiceActivity();
  feed(activity, QUIET_DB, 500);
  expect(activity.takeUnfinished()).toBeUndefined();
  feed(activity, QUIET_DB, 500);
  feed(activity, VOICE_DB, 1000);
  expect(activity.takeUnfinished()!.length / 16_000).toBeGreaterThanOrEqual(1);
  expect(activity.takeUnfinished()).toBeUndefined();
});
