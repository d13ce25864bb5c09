/** Samplers of other programs' presets, by the names they have here. */
import type { Sampler } from "../presets/preset_document.ts";
import type { JsonObject } from "../json/type_guards.ts";

/**
 * Gives the samplers of a preset.
 *
 * @param names Their names there, by the names here.
 * @param read Gives a sampler as it is counted here; `undefined` for one that is switched off.
 */
export function samplerOf(
  preset: JsonObject,
  names: Record<string, string>,
  read: (value: number, name: string) => number | undefined = (value) => value,
): Sampler {
  const found = Object.entries(names).flatMap(([ours, theirs]) => {
    const value = preset[theirs];
    const counted = typeof value === "number" && Number.isFinite(value) ? read(value, ours) : undefined;
    return counted === undefined ? [] : [[ours, counted] as const];
  });
  return Object.fromEntries(found);
}
