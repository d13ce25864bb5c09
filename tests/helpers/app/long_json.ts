/** Records JSON that blocks the serving thread. */
import { vi } from "vitest";

/** What the serving thread may parse or write at once: a piece of a list, or a small card. */
const MAX_CHARS = 100_000;

/** Runs something, and returns the lengths of all long JSON that this thread has parsed or written meanwhile. */
export async function listLongJson(run: () => Promise<void>): Promise<number[]> {
  const lengths: number[] = [];
  const { parse, stringify } = JSON;
  const note = (text: unknown) => {
    if (typeof text === "string" && text.length > MAX_CHARS) lengths.push(text.length);
  };
  vi.spyOn(JSON, "parse").mockImplementation((text, ...more) => {
    note(text);
    return parse(text, ...more);
  });
  vi.spyOn(JSON, "stringify").mockImplementation((...args: Parameters<typeof stringify>) => {
    const text = stringify(...args);
    note(text);
    return text;
  });
  try {
    await run();
  } finally {
    vi.restoreAllMocks();
  }
  return lengths;
}
