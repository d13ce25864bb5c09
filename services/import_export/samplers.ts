/** Maps the samplers of other programs' presets. */
import type { Sampler } from "../presets/preset.ts";
import type { JsonObject } from "../json/type_guards.ts";

/**
 * Returns the samplers of a preset.
 *
 * @param names The program's names by ours.
 * @param read Converts a value; `undefined` if the sampler is off.
 */
export function mapSampler(
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
