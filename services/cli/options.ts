/** Reads the options of one command. */
import { AppError } from "../errors.ts";

/** Options a command takes: `true` for those with a value. */
export type OptionTable = Readonly<Record<string, boolean>>;

/**
 * Reads `--name value`, `--name=value` and `--name`.
 *
 * @returns Values by name without hyphens in front; `"true"` for an option without one.
 * @throws {AppError} `invalid_request` for anything the table does not know, and for a missing value.
 */
export function parseOptions(args: readonly string[], table: OptionTable): Map<string, string> {
  const values = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [, name = "", inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(args[i]!) ?? [];
    const takesValue = table[name];
    if (takesValue === undefined) {
      const found = args[i]!.startsWith("-") ? `Unknown option ${args[i]}` : `"${args[i]}" belongs to no option`;
      throw new AppError("invalid_request", `${found}. See parlor auth --help`);
    }
    const value = takesValue ? inline ?? args[++i] : inline ?? "true";
    if (value === undefined || value === "") {
      throw new AppError("invalid_request", `Bad value for --${name}: no value`);
    }
    values.set(name, value);
  }
  return values;
}
