import type { FormDraft } from "../../state/app/form_draft.ts";
import { texts } from "../../texts/texts.ts";
import { Button } from "../Button.tsx";

/** What became of the text that was typed before, and how to get rid of it. */
export function DraftNotice({ draft }: { draft: FormDraft }) {
  const t = texts.drafts;
  const isClashing = draft.notice.value === "clashing";
  return (
    <div class={isClashing ? "draft-notice is-clashing" : "draft-notice"} role="status">
      <span>
        {isClashing ? t.clashing : t.restored}
        {draft.lacksSecrets.value && ` ${t.withoutSecrets}`}
      </span>
      {isClashing && <Button kind="quiet" onClick={() => void draft.showClashing()}>{t.show}</Button>}
      <Button kind="quiet" onClick={() => void draft.discard()}>{t.discard}</Button>
    </div>
  );
}
