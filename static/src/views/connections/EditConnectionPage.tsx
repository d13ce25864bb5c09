/** Changing one connection. */
import { EmptyState } from "../../components/EmptyState.tsx";
import { LinkButton } from "../../components/Button.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ConnectionForm } from "./ConnectionForm.tsx";

/** The form, once it is known what it is about. */
export function ConnectionFormPage({ id }: { id: string }) {
  const { connections } = useStore();
  const connection = connections.items.value.find((item) => item.id === id);
  if (!connection) {
    if (connections.state.value === "loading") return <p class="muted" role="status">{texts.loading}</p>;
    return (
      <EmptyState title={texts.form.missing}>
        <LinkButton href="/settings/connections">{texts.settings.connections}</LinkButton>
      </EmptyState>
    );
  }
  return (
    <section>
      <h2>{texts.form.editTitle}</h2>
      <ConnectionForm connection={connection} />
    </section>
  );
}
