/** Shared by the commands on the data folder: their options, and the server's configuration. */
import { CONFIG_ROWS, toFlagName } from "../config/config_keys.ts";
import type { DataLocation } from "../diagnostics/data_checks.ts";
import { AppError } from "../errors.ts";
import { parseOptions } from "./cli_environment.ts";

/** Parsed arguments of a command. */
export interface CommandRequest {
  /** Arguments that aren't options, such as a file. */
  words: string[];
  options: Map<string, string>;
  /** Remaining arguments, for the server's configuration. */
  rest: string[];
}

/** Environment of a command on the data folder. */
export interface DataOutside {
  environment: Readonly<Record<string, string | undefined>>;
  version: string;
  /** Reads the server's configuration from the options that are not the command's own. @throws {AppError} */
  place(rest: string[]): DataLocation;
  print(text: string): void;
}

/** A command. Returns its exit code if that isn't 0. @throws {AppError} with a message for the terminal */
export type DataCommand = (args: readonly string[], outside: DataOutside) => Promise<number | void>;

/**
 * Takes a command's own options, and as many words as it has, out of its arguments.
 *
 * @param own Its options: `true` for those with a value.
 * @param usage Said when the number of words is another one.
 */
export function takeOptions(
  args: readonly string[],
  own: Readonly<Record<string, boolean>>,
  { wordCount, usage }: { wordCount: number; usage: string },
): CommandRequest {
  const mine: string[] = [];
  const words: string[] = [];
  const rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    const name = /^--([a-z-]+)/.exec(arg)?.[1];
    const takesNext = !arg.includes("=") && i + 1 < args.length;
    if (name === undefined && words.length < wordCount) words.push(arg);
    else if (name !== undefined && own[name] !== undefined) {
      mine.push(arg, ...(own[name] && takesNext ? [args[++i]!] : []));
    } else rest.push(arg, ...(name !== undefined && takesNext && isValueOf(name, args[i + 1]!) ? [args[++i]!] : []));
  }
  if (words.length < wordCount) throw new AppError("invalid_request", `Usage: ${usage}`);
  return { words, options: parseOptions(mine, own), rest };
}

/** Returns whether the word after an option of the configuration is its value. A switch needs none: the word may be a file. */
function isValueOf(name: string, next: string): boolean {
  const isSwitch = CONFIG_ROWS.some(([key, { type }]) => type === "boolean" && toFlagName(key) === `--${name}`);
  return isSwitch ? /^(true|false|0|1)$/.test(next) : !next.startsWith("--");
}
