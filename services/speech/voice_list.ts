/** Lists of voices in all the shapes that speech servers give. */
import type { Voice } from "./voice_lists.ts";
import { isJsonObject } from "../json/type_guards.ts";

/** Voices taken from one answer; a server with more is not believed. */
const MAX_VOICES = 5_000;
const MAX_NAME = 300;

/**
 * Reads a list of voices: `voices`, `data` or the value itself, as strings, as objects with an id, or as an object whose keys
 * are the names.
 *
 * @returns `undefined` where the value holds none: an error in a 200, an empty list, another answer altogether.
 */
export function parseVoiceList(value: unknown): Voice[] | undefined {
  if (!isJsonObject(value) && !Array.isArray(value)) return undefined;
  const holder = Array.isArray(value) ? value : value.voices ?? value.data ?? (holdsVoices(value) ? value : undefined);
  const entries = Array.isArray(holder) ? holder : isJsonObject(holder) ? Object.keys(holder) : [];
  const voices = new Map<string, Voice>();
  for (const entry of entries.slice(0, MAX_VOICES)) {
    const voice = voiceOf(entry);
    if (voice !== undefined && !voices.has(voice.id)) voices.set(voice.id, voice);
  }
  return voices.size === 0 ? undefined : [...voices.values()];
}

/** Piper answers with an object keyed by voice; any other object without a list is no answer to this question. */
function holdsVoices(value: Record<string, unknown>): boolean {
  return !("error" in value) && !("detail" in value) && Object.values(value).every(isJsonObject);
}

function voiceOf(entry: unknown): Voice | undefined {
  if (typeof entry === "string") return named(entry, entry);
  if (!isJsonObject(entry)) return undefined;
  const id = [entry.id, entry.voice_id, entry.name].find((candidate) => typeof candidate === "string");
  const voice = named(id, typeof entry.name === "string" ? entry.name : id);
  if (voice !== undefined && typeof entry.language === "string") voice.language = entry.language.slice(0, MAX_NAME);
  return voice;
}

function named(id: unknown, name: unknown): Voice | undefined {
  if (typeof id !== "string" || id.trim() === "" || id.length > MAX_NAME) return undefined;
  return { id, name: String(name).trim().slice(0, MAX_NAME) || id };
}
