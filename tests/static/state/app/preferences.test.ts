/** Settings that are read and changed at the same time. */
import { beforeEach, expect, test } from "vitest";
import type { Api } from "../../../../static/src/api/api.ts";
import type { Settings } from "../../../../static/src/api/types.ts";
import { Device } from "../../../../static/src/state/app/device.ts";
import { Preferences } from "../../../../static/src/state/app/preferences.ts";

const named = (display_name: string, theme = "system") => ({ display_name, theme, language: null }) as Settings;

/** Requests that wait for the test's response. */
let reads: PromiseWithResolvers<Settings>[];
let changes: PromiseWithResolvers<Settings>[];
let preferences: Preferences;
beforeEach(() => {
  [reads, changes] = [[], []];
  const waiting = (all: PromiseWithResolvers<Settings>[]) => {
    all.push(Promise.withResolvers<Settings>());
    return all.at(-1)!.promise;
  };
  const api = { getSettings: () => waiting(reads), changeSettings: () => waiting(changes) } as unknown as Api;
  preferences = new Preferences(api, new Device(undefined), ["en"]);
});

test("shows the newer of two changes from another device when responses arrive out of order", async () => {
  const both = [preferences.refresh(), preferences.refresh()];
  reads[1]!.resolve(named("Second"));
  await both[1];
  reads[0]!.resolve(named("First"));
  await both[0];
  expect(preferences.settings.value).toEqual(named("Second"));
});

test("another device's change is read again if it arrives while a change of this one is in flight", async () => {
  const changed = preferences.change({ theme: "dark" });
  const refreshed = preferences.refresh();
  reads[0]!.resolve(named("Theirs", "dark"));
  await refreshed;
  // Answered before the other device changed the name.
  changes[0]!.resolve(named("Mine", "dark"));
  await changed;
  reads[1]!.resolve(named("Theirs", "dark"));
  await reads[1]!.promise;
  await expect.poll(() => preferences.settings.value).toEqual(named("Theirs", "dark"));
});
