/** The progress of an import, and its failures. */
import type { ImportedCard } from "../../api/characters.ts";
import { Button } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { Notice } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import type { CardImports } from "../../state/import_export/card_imports.ts";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Nothing while idle. */
export function ImportNotices(
  { imports }: { imports: Pick<CardImports<unknown>, "progress" | "failures" | "forgetFailures"> },
) {
  const t = texts.characters;
  const progress = imports.progress.value;
  const failures = imports.failures.value;
  if (!progress && failures.length === 0) return null;
  return (
    <div class="gallery-note">
      {progress && (
        <Progress
          label={t.importing}
          value={progress.done / progress.total}
          text={t.importDone(progress.done, progress.total)}
        />
      )}
      {failures.length > 0 && (
        <Notice
          tone="danger"
          title={t.importFailed(failures.length)}
          actions={<Button onClick={() => imports.forgetFailures()}>{texts.close}</Button>}
        >
          {failures.map(({ name, reason, isExport }, index) => (
            <span class="failed-import" key={index}>
              <strong>{name}</strong> {isExport ? <a href="/settings/data/import">{t.isExport}</a> : reason}
            </span>
          ))}
        </Notice>
      )}
    </div>
  );
}

/** Links to what cards have brought, and to what was there already. */
export function ImportedCards({ cards }: { cards: readonly ImportedCard[] }) {
  const t = texts.characters;
  return (
    <List label={t.importedList}>
      {cards.map(({ id, name, isPresent }, index) => (
        <ListRow
          key={index}
          title={<VisibleText text={name} />}
          text={isPresent && t.isPresent}
          href={`/characters/${encodeURIComponent(id)}`}
        />
      ))}
    </List>
  );
}

/** Returns how many cards were imported, and how many were there already. */
export function describeImported(cards: readonly ImportedCard[]): string {
  const t = texts.characters;
  const present = cards.filter(({ isPresent }) => isPresent).length;
  const added = cards.length - present;
  return [added > 0 && t.imported(added), present > 0 && t.present(present)].filter(Boolean).join(" · ");
}

/** Shows how many were imported; a single one can be opened. */
export function notifyImported(store: Store, cards: readonly ImportedCard[]): void {
  const t = texts.characters;
  const [only] = cards;
  if (!only) return;
  const open = { label: t.open, run: () => store.router.go(`/characters/${encodeURIComponent(only.id)}`) };
  store.toasts.show(describeImported(cards), cards.length === 1 ? { action: open } : {});
}
