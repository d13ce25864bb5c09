/** The choice of what is sent of a document: what fits and matches, all of it, or some pages. */
import { useState } from "preact/hooks";
import type { DocumentUse, StoredDocument } from "../../api/types.ts";
import { Icon } from "../../components/Icon.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { showPageList } from "../../state/chat/document_pages.ts";
import { texts } from "../../texts/texts.ts";
import { DocumentReader } from "./DocumentReader.tsx";

/** What is sent of one document. */
export type ChosenUse = Pick<DocumentUse, "use" | "pages">;

/** The button shows the choice. Pages are chosen in the reader. */
export function DocumentUseMenu(
  { document: { id, name, pages: count }, use, onChange }: {
    document: StoredDocument;
    use: ChosenUse;
    onChange: (use: ChosenUse) => void;
  },
) {
  const [isChoosing, setChoosing] = useState(false);
  const t = texts.documents;
  const kind = use.use ?? "auto";
  const shown = kind === "pages" ? t.sendsPages(showPageList(use.pages ?? "")) : kind === "whole" ? t.sendsAll : t.auto;
  return (
    <>
      <Menu
        class="document-use"
        label={t.useOf(name, shown)}
        items={[
          { label: t.auto, hint: t.autoHint, isChecked: kind === "auto", onSelect: () => onChange({ use: "auto" }) },
          { label: t.sendAll, isChecked: kind === "whole", onSelect: () => onChange({ use: "whole" }) },
          { label: t.choosePages, isChecked: kind === "pages", onSelect: () => setChoosing(true) },
        ]}
      >
        <span>{shown}</span>
        <Icon name="below" />
      </Menu>
      {isChoosing && (
        <DocumentReader
          id={id}
          name={name}
          choice={{
            count,
            pages: kind === "pages" ? use.pages ?? "" : "",
            onChoose: (pages) => onChange(pages === "" ? { use: "auto" } : { use: "pages", pages }),
          }}
          onClose={() => setChoosing(false)}
        />
      )}
    </>
  );
}
