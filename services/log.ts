/** The one way a service says something on standard error. */

/** Severities, least first. */
const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
/** How severe a line is. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes lines that are severe enough. Fields hold no secret, no content, no id of a conversation. */
export interface Log {
  (level: LogLevel, message: string, fields?: Record<string, unknown>): void;
}

/**
 * Makes a log.
 *
 * @param options.asJson One JSON object a line, for machines; else text for a terminal.
 * @param options.write Takes one line without its end.
 */
export function createLog(
  options: { level: LogLevel; asJson: boolean; write(line: string): void; now(): number },
): Log {
  const least = LOG_LEVELS.indexOf(options.level);
  return (level, message, fields = {}) => {
    if (LOG_LEVELS.indexOf(level) < least) return;
    const time = new Date(options.now()).toISOString();
    if (options.asJson) {
      options.write(JSON.stringify({ time, level, message, ...fields }));
      return;
    }
    const pairs = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    options.write([time, level.padEnd(5), message, ...pairs].join(" "));
  };
}

const encoder = new TextEncoder();

/** Writes a line to standard output or error; console.error takes four times as long, at every request. */
export function writeLine(line: string, to: { writeSync(bytes: Uint8Array): number } = Deno.stderr): void {
  const bytes = encoder.encode(`${line}\n`);
  try {
    for (let at = 0; at < bytes.length;) at += to.writeSync(bytes.subarray(at));
  } catch {
    // Nobody reads it any more; that is no reason to fail a request.
  }
}

/** Creates the log of this process: text on a terminal, otherwise JSON lines. */
export function createProcessLog(level: LogLevel): Log {
  return createLog({ level, asJson: !Deno.stderr.isTerminal(), write: (line) => writeLine(line), now: Date.now });
}
