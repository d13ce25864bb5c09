/** The sources of a reply. */
import type { Message } from "../../../api/types.ts";
import { texts } from "../../../texts/texts.ts";

/** A numbered list below the reply. Only web addresses are links. */
export function MessageSources({ sources }: { sources: NonNullable<Message["sources"]> }) {
  return (
    <section class="sources" aria-label={texts.chat.sources}>
      <h3>{texts.chat.sources}</h3>
      <ol>
        {sources.map(({ n, url, title, quote }) => {
          const host = findHost(url);
          const name = title || host || url || quote || "";
          return (
            <li key={n} value={n}>
              {host === undefined
                ? <span>{name}</span>
                : <a href={url} target="_blank" rel="noopener noreferrer nofollow" title={url}>{name}</a>}
              {host !== undefined && title && <span class="source-host">{host}</span>}
              {quote && quote !== name && <q>{quote}</q>}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** Returns the host of a web address; `undefined` for any other URL, which must not become a link. */
function findHost(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { protocol, host } = new URL(url);
  return protocol === "https:" || protocol === "http:" ? host : undefined;
}
