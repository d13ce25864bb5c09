/** A guard for tests, which treats some loopback addresses as foreign. */
import { type Guard, type GuardOptions, openGuard } from "../../../services/http/guard/guarded_fetch.ts";

/** The loopback address that stands for the public internet in these tests: let through by `guard_allow`. */
export const PUBLIC = "127.0.0.2";
/** A loopback address that stands for the private network: not let through. */
export const PRIVATE = "127.0.0.3";

/** Addresses by name, as a fake DNS. A function is called for each lookup. */
export type Names = Record<string, string[] | (() => Promise<string[]> | string[])>;

export interface TestGuard extends Guard, AsyncDisposable {
  /** Every name looked up so far. */
  readonly lookups: string[];
}

/** Opens a guard with a test DNS; names it does not know have no address. */
export async function openTestGuard(names: Names, options: Partial<GuardOptions> = {}): Promise<TestGuard> {
  // Deno 2.9 also looks up each name with the system resolver, which may time out. This keeps the timeout short.
  Deno.env.set("RES_OPTIONS", "timeout:1 attempts:1");
  const lookups: string[] = [];
  const guard = await openGuard({
    allow: [`${PUBLIC}/32`],
    exactOrigins: [],
    resolve: async (host) => {
      lookups.push(host);
      const found = names[host] ?? [];
      return typeof found === "function" ? await found() : found;
    },
    ...options,
  });
  return { ...guard, lookups, [Symbol.asyncDispose]: () => guard.close() };
}

/** The error that a caller of the guard sees. */
export async function failureOf(response: Promise<unknown>): Promise<{ code?: string; message: string }> {
  try {
    await response;
  } catch (error) {
    if (error instanceof Error) {
      return { code: "code" in error ? String(error.code) : undefined, message: error.message };
    }
    throw error;
  }
  throw new Error("expected a failure, the call succeeded");
}
