/** The overview of keyboard shortcuts. */
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { texts } from "../../texts/texts.ts";
import { formatShortcut } from "./palette_entries.ts";

/** Opened by `?` and from the palette. */
export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const t = texts.shortcuts;
  const groups: [title: string, rows: [keys: string, what: string][]][] = [
    [t.everywhere, [
      [formatShortcut("palette"), texts.palette.title],
      [formatShortcut("newChat"), texts.nav.newChat],
      [formatShortcut("overview"), t.title],
      ["Esc", t.escape],
    ]],
    [t.inChat, [
      ["Enter", t.send],
      ["Shift Enter", t.line],
      ["↑", t.editLast],
      ["/", t.commands],
      ["Alt ← →", t.variants],
      ["Alt R", texts.chat.regenerate],
      ["Alt C", texts.chat.continueReply],
      [formatShortcut("palette").replace("K", "F"), t.find],
      [formatShortcut("palette").replace("K", "P"), t.print],
    ]],
    [t.inLists, [["↑ ↓", t.step], ["Home End", t.ends]]],
  ];
  return (
    <Dialog title={t.title} onClose={onClose}>
      {groups.map(([title, rows]) => (
        // Focusable, because the dialog scrolls on phones and has nothing else in it to focus.
        <section key={title} class="shortcuts" tabIndex={0} aria-label={title}>
          <h3>{title}</h3>
          <dl>
            {rows.map(([keys, what]) => (
              <div key={keys}>
                <dt>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
