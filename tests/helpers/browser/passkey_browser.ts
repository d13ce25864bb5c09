/** A real Chromium with a virtual authenticator and host names that resolve to this machine. */
import type { Browser, BrowserContextOptions } from "playwright-core";
import { openBrowser, openPage, type WatchedPage } from "./browser.ts";
import { builtUi } from "./built_ui.ts";

/** Host names that resolve to this machine. */
export const HOSTS = ["desk.fox-owl.ts.net", "phone.fox-owl.ts.net", "chat.example"];

/** Builds the page if necessary and starts a browser that accepts test certificates. @param hosts Names that resolve to this machine. */
export async function openPasskeyBrowser(hosts: readonly string[] = HOSTS): Promise<Browser> {
  await builtUi();
  const rules = hosts.map((host) => `MAP ${host} 127.0.0.1`).join(",");
  return await openBrowser([`--host-resolver-rules=${rules}`]);
}

/** A device with its own cookies and passkeys. */
export interface Device extends WatchedPage {
  /** Makes user verification fail or succeed from now on. */
  setUserVerified(isVerified: boolean): Promise<void>;
  countPasskeys(): Promise<number>;
}

/** Opens a device at a URL. @see chromedevtools.github.io/devtools-protocol, WebAuthn */
export async function openDevice(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<Device> {
  const watched = await openPage(browser, new URL(address).origin, { ignoreHTTPSErrors: true, ...options });
  const session = await watched.context.newCDPSession(watched.page);
  await session.send("WebAuthn.enable");
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await watched.page.goto(address);
  return {
    ...watched,
    async setUserVerified(isUserVerified) {
      await session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
    },
    async countPasskeys() {
      return (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials.length;
    },
  };
}
