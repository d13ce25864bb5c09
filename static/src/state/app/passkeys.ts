/** Passkey ceremonies in the browser. The library loads with the first one. */
import type { AccessApi } from "../../api/auth.ts";
import { asApiError } from "../../api/client.ts";
import { texts } from "../../texts/texts.ts";

/**
 * Creates a passkey on this device and enrolls it, which also signs in. @throws An error for `describePasskeyError`.
 */
export async function enroll(api: AccessApi, { name, code }: { name: string; code?: string }): Promise<void> {
  const optionsJSON = await api.beginRegistration(code === undefined ? { name } : { name, code });
  const { startRegistration } = await import("@simplewebauthn/browser");
  await api.finishRegistration({ ...await startRegistration({ optionsJSON }), name });
}

/** Signs in with a passkey. @throws An error for `describePasskeyError`. */
export async function signIn(api: AccessApi): Promise<void> {
  const optionsJSON = await api.beginLogin();
  const { startAuthentication } = await import("@simplewebauthn/browser");
  await api.finishLogin(await startAuthentication({ optionsJSON }));
}

/** Describes a failed ceremony: the browser's own messages are for developers. */
export function describePasskeyError(thrown: unknown): string {
  const name = thrown instanceof Error ? thrown.name : "";
  if (name === "NotAllowedError" || name === "AbortError") return texts.access.cancelled;
  if (name === "InvalidStateError") return texts.access.known;
  if (name === "SecurityError") return texts.access.insecure;
  return asApiError(thrown).message;
}

const BROWSERS: [RegExp, string][] = [
  [/\bEdg(e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/(Chrome|Chromium|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/iPhone/, "iPhone"],
  [/iPad/, "iPad"],
  [/Android/, "Android"],
  [/Mac OS X/, "Mac"],
  [/Windows/, "Windows"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

/** Suggests a name for this device, such as `Firefox on Linux`. */
export function deviceName(userAgent: string): string {
  const find = (table: [RegExp, string][]) => table.find(([pattern]) => pattern.test(userAgent))?.[1];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  return browser && system ? texts.access.deviceName(browser, system) : texts.access.device;
}
