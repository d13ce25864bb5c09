/** What the search found for other pages: all searches look together, and each server is offered where it belongs. */
import type { FoundServers } from "../../api/types.ts";
import { LinkButton } from "../../components/Button.tsx";
import { texts } from "../../texts/texts.ts";

type ServerPurpose = keyof FoundServers;

/** The page of each kind. */
const PAGES: Record<ServerPurpose, string> = {
  models: "/settings/connections",
  speech: "/settings/voice",
  transcription: "/settings/voice",
  images: "/settings/images",
};
const PURPOSES = Object.keys(PAGES) as ServerPurpose[];

/** Nothing if there are none. @param own What this page offers itself. */
export function FoundElsewhere({ found, own }: { found: FoundServers; own: readonly ServerPurpose[] }) {
  const t = texts.connections;
  const others = PURPOSES.filter((purpose) => !own.includes(purpose))
    .flatMap((purpose) => found[purpose].map((server) => ({ purpose, server })));
  if (others.length === 0) return null;
  return (
    <>
      <h4>{t.elsewhere}</h4>
      <ul class="found-list">
        {others.map(({ purpose, server }) => {
          const name = "software" in server ? server.software : texts.images.kinds[server.kind];
          return (
            <li key={`${purpose} ${server.base_url}`} class="found-row">
              <div class="found-text">
                <p class="found-name">{name}</p>
                <p class="muted facts">{`${t.purposes[purpose]} · ${server.base_url}`}</p>
              </div>
              <LinkButton href={PAGES[purpose]} label={`${t.setUp}: ${name}, ${t.purposes[purpose]}`}>
                {t.setUp}
              </LinkButton>
            </li>
          );
        })}
      </ul>
    </>
  );
}
