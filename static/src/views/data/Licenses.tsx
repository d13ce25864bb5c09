/** Whose work is inside, and under which terms; read when asked for, since the texts are long. */
import type { LicenseNotice } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { readLicences } from "../../api/diagnostics.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useReading } from "../use_resource.ts";

/** A button, then the packages. */
export function Licences() {
  const t = texts.licences;
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="privacy-part" aria-labelledby="licences">
      <h3 id="licences" tabIndex={-1}>{t.title}</h3>
      <p>{texts.about.licence}</p>
      {isOpen ? <Packages /> : (
        <div class="actions-row">
          <Button onClick={() => setOpen(true)}>{t.show}</Button>
        </div>
      )}
    </section>
  );
}

function Packages() {
  const { api } = useStore();
  const t = texts.licences;
  const { value, error, again } = useReading(() => readLicences(api.client));
  const [query, setQuery] = useState("");
  if (error) return <ErrorNote title={t.failed} error={error} onRetry={again} />;
  if (value === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const words = query.trim().toLowerCase();
  const found = value.filter(({ name, licence }) => `${name} ${licence}`.toLowerCase().includes(words));
  return (
    <>
      <TextField label={t.find} type="search" value={query} onInput={setQuery} />
      <p class="muted" role="status">{found.length === 0 ? t.none : t.count(found.length)}</p>
      <ul class="licences">
        {found.map((notice) => <Package key={`${notice.name} ${notice.version}`} notice={notice} />)}
      </ul>
    </>
  );
}

function Package({ notice: { name, version, licence, text } }: { notice: LicenseNotice }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{name}</strong> {version} {licence && <span class="muted">{licence}</span>}
        </summary>
        {isOpen && (text === ""
          ? <p class="muted">{texts.licences.noText}</p>
          : <pre class="licence-text" tabIndex={0} role="region" aria-label={name}>{text}</pre>)}
      </details>
    </li>
  );
}
