/** The personas, and the default one. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { personaPath } from "../../api/characters.ts";
import type { Persona } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { Menu, type MenuItem } from "../../components/overlays/Menu.tsx";
import { CardImports } from "../../state/import_export/card_imports.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ImportNotices } from "../characters/ImportNotices.tsx";
import { toPersonaPortraitProps } from "../characters/Avatars.tsx";
import { warnAboutLargeExport } from "../documents/large_export.ts";

/** The card of a persona or a character. */
const CARD_FILES = ".png,.json,.webp,.jpg,.jpeg,image/png,application/json";

/** The list. */
export function PersonasPage() {
  const store = useStore();
  const { people } = store;
  const imports = useMemo(
    () => new CardImports((file) => store.api.importPersona(file), (all) => onImported(store, all)),
    [],
  );
  useEffect(() => people.loadPersonas(), []);
  const t = texts.personas;
  const personas = people.shownPersonas.value;
  const state = people.personasState.value;
  const error = people.personasError.value;
  const isEmpty = state === "ready" && personas.length === 0;
  return (
    <section>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {!isEmpty && <AddPersona imports={imports} />}
      <ImportNotices imports={imports} />
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void people.refreshPersonas()} />}
      {(state === "idle" || state === "loading") && <p class="muted" role="status">{texts.loading}</p>}
      {isEmpty && (
        <EmptyState level={3} title={t.empty} text={t.emptyText}>
          <AddPersona imports={imports} />
        </EmptyState>
      )}
      {personas.length > 0 && (
        <List label={t.title}>
          {personas.map((persona) => <PersonaRow key={persona.id} persona={persona} />)}
        </List>
      )}
    </section>
  );
}

function onImported(store: Store, personas: Persona[]): void {
  const t = texts.personas;
  const [only] = personas;
  if (!only) return;
  void store.people.refreshPersonas();
  const open = { label: t.open, run: () => store.router.go(`/settings/personas/${encodeURIComponent(only.id)}`) };
  store.toasts.show(t.imported(personas.length), personas.length === 1 ? { action: open } : {});
}

/** Ways to add a persona: a form, or card files of personas or characters. */
function AddPersona({ imports }: { imports: CardImports<Persona> }) {
  const chooser = useRef<HTMLInputElement>(null);
  const t = texts.personas;
  return (
    <>
      <input
        ref={chooser}
        type="file"
        hidden
        multiple
        accept={CARD_FILES}
        onChange={(event) => {
          void imports.add([...event.currentTarget.files ?? []]);
          event.currentTarget.value = "";
        }}
      />
      <div class="actions-row">
        <LinkButton href="/settings/personas/new" icon="plus" kind="primary">{t.add}</LinkButton>
        <Button icon="import" onClick={() => chooser.current?.click()}>{t.import}</Button>
      </div>
    </>
  );
}

function PersonaRow({ persona }: { persona: Persona }) {
  const store = useStore();
  const { people, preferences } = store;
  const t = texts.personas;
  const createExport = (label: string, query: string): MenuItem => {
    const href = `${personaPath(persona.id)}/export${query}`;
    return { label, icon: "export", href, onSelect: () => warnAboutLargeExport(store, href) };
  };
  const isDefault = preferences.settings.value?.default_persona_id === persona.id;
  const setDefault = (id: string | null) =>
    preferences.change({ default_persona_id: id }).catch((thrown) => store.report(thrown));
  const remove = () => {
    people.hide(persona.id, true);
    store.toasts.offerUndo(t.removed(persona.name), texts.undo, () => people.hide(persona.id, false), (isLeaving) => {
      people.removePersona(persona.id, isLeaving).catch((thrown) => store.report(thrown));
    });
  };
  const useful: MenuItem[] = [
    isDefault
      ? { label: t.unsetDefault, icon: "user", onSelect: () => void setDefault(null) }
      : { label: t.setDefault, icon: "user", onSelect: () => void setDefault(persona.id) },
    createExport(t.exportCard, ""),
    ...persona.has_avatar ? [createExport(texts.characters.exportWithMetadata, "?image_metadata=keep")] : [],
  ];
  return (
    <ListRow
      href={persona.unreadable ? "/settings/data#unreadable" : `/settings/personas/${encodeURIComponent(persona.id)}`}
      title={<span class="clamped">{persona.name}</span>}
      text={persona.unreadable ? texts.unreadable.badge : persona.description || t.noDescription}
      start={<Portrait {...toPersonaPortraitProps(persona)} widthPx={44} class="persona-portrait" />}
      end={
        <>
          {isDefault && <span class="badge">{t.isDefault}</span>}
          <Menu
            label={t.more(persona.name)}
            items={[
              ...(persona.unreadable ? [] : useful),
              { label: t.remove, icon: "trash", isDanger: true, onSelect: remove },
            ]}
          />
        </>
      }
    />
  );
}
