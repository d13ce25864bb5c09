/** Everything a person owns as one zip: what is in it, what is not, and the way to have it. */
import { Notice } from "../../components/Notice.tsx";
import { texts } from "../../texts/texts.ts";
import { SaveLink } from "./DownloadLink.tsx";

/** Warned of where the network could read along. */
export function ExportPart() {
  const t = texts.leaving;
  const isSafe = globalThis.isSecureContext;
  return (
    <section class="privacy-part" aria-labelledby="export">
      <h3 id="export" tabIndex={-1}>{t.title}</h3>
      <p>{t.text}</p>
      <dl class="moving-facts">
        <dt>{t.inside}</dt>
        <dd>{t.insideText}</dd>
        <dt>{t.outside}</dt>
        <dd>{t.outsideText}</dd>
      </dl>
      <p class="muted">{t.unsealed}</p>
      {!isSafe && <Notice tone="warning">{t.plainHttp}</Notice>}
      <div class="actions-row">
        <SaveLink path="/api/export" fileName={`parlor-${new Date().toISOString().slice(0, 10)}.zip`}>
          {isSafe ? t.save : t.understood}
        </SaveLink>
      </div>
    </section>
  );
}
