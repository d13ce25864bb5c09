import { expect, test } from "vitest";
import { describePasskeyError, deviceName } from "../../../../static/src/state/app/passkeys.ts";
import { loadLater } from "../../../../static/src/texts/en/en.ts";

await loadLater();

test.each([
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36",
    "Chrome on Linux",
  ],
  ["Mozilla/5.0 (Windows NT 10.0; Win64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1 Version/19.0 Safari/605.1", "Safari on Mac"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 Mobile Safari/604.1", "Safari on iPhone"],
  ["Mozilla/5.0 (Android 16; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0", "Firefox on Android"],
  ["curl/8", "This device"],
])("suggests a name for a browser with the user agent %s", (userAgent, name) => {
  expect(deviceName(userAgent)).toBe(name);
});

test("describes errors of passkey ceremonies for users", () => {
  const thrown = (name: string) =>
    Object.assign(new Error("The operation either timed out or was not allowed"), { name });
  expect(describePasskeyError(thrown("NotAllowedError"))).toMatch(/was canceled/);
  expect(describePasskeyError(thrown("InvalidStateError"))).toMatch(/already has a passkey/);
  expect(describePasskeyError(thrown("SecurityError"))).toMatch(/doesn’t allow passkeys at this address/);
  expect(describePasskeyError(new Error("Anything else"))).toBe("Anything else");
});
