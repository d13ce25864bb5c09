/** Calls to addresses that a user, a page or a redirect supplied; what asks them is given the guard and no other way out. */
import { CardSite } from "../characters/sites/card_site.ts";
import type { Config } from "../config/config.ts";
import { type Guard, openGuard } from "../http/guard/guarded_fetch.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { Ground } from "./ground.ts";

/** The guard, and the one site that it is opened for. */
export interface GuardRoom {
  guard: Guard;
  cardSite: CardSite;
}

/** Origins that may have any name and port, since the owner configured them. */
export function exactOriginsOf({ hubUrl, cardSiteUrl }: Config): string[] {
  return [hubUrl, cardSiteUrl];
}

/** Opens the guard with its proxy. */
export async function openGuardRoom({ config, now }: Ground, onClose: (hook: CloseHook) => void): Promise<GuardRoom> {
  const guard = await openGuard({ allow: [...config.guardAllow], exactOrigins: exactOriginsOf(config) });
  onClose(() => guard.close());
  const cardSite = new CardSite({ guard, siteUrl: config.cardSiteUrl, maxCardBytes: config.maxUploadBodyBytes, now });
  return { guard, cardSite };
}
