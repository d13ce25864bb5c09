/** About: version, licenses, and diagnostics of the installation. */
import { foldForSearch } from "../../../../services/json/search_fold.ts";
import { useState } from "preact/hooks";
import { getReleases, readFindings, readLicenses } from "../../api/server.ts";
import type { Finding, LicenseNotice } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { Icon, type IconName } from "../../components/Icon.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { type ServerTexts, translateFinding, useServerTexts } from "../../texts/server_texts.ts";
import { formatDateTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { CHANGELOG_PATH } from "../releases/UpdateNotice.tsx";
import { useResource } from "../hooks.tsx";

/** The server's version and diagnostics. */
export function AboutPage() {
  const version = useStore().connections.health.value?.version;
  const t = texts.about;
  return (
    <section class="settings-parts">
      <h2>{texts.settings.about}</h2>
      <div class="settings-part">
        <p>{t.text}</p>
        {version && <p class="muted">{t.version} {version}</p>}
        <NewVersions />
        <div class="actions-row">
          <LinkButton href={CHANGELOG_PATH}>{texts.releases.changelog}</LinkButton>
        </div>
      </div>
      <Licenses />
      <Findings />
    </section>
  );
}

/** Whether to ask for new versions, and what the last request found. */
function NewVersions() {
  const store = useStore();
  const { api, preferences } = store;
  const { value } = useResource(() => getReleases(api.client), "release_check");
  const settings = preferences.settings.value;
  const t = texts.releases;
  if (!settings || !value) return null;
  if (value.host === null) return <p id="check-releases" class="muted" tabIndex={-1}>{t.noServer}</p>;
  const { checked_at, error, newer } = value;
  return (
    <>
      <Switch
        id="check-releases"
        label={t.check}
        hint={t.checkHint(value.host)}
        isOn={settings.check_releases}
        onChange={(check_releases) =>
          void preferences.change({ check_releases }).catch((thrown) => store.report(thrown))}
      />
      {settings.check_releases && checked_at !== null && (
        <p class="muted" role="status">
          {error
            ? `${t.failed(formatDateTime(checked_at))} ${error}`
            : newer
            ? t.available(newer.version)
            : t.newest(formatDateTime(checked_at))}
        </p>
      )}
    </>
  );
}

function Findings() {
  const { api } = useStore();
  const { value, error, isBusy, again } = useResource(() => readFindings(api.client));
  const serverTexts = useServerTexts(); // loads while the diagnostics run
  const t = texts.about;
  const wrong = value?.filter(({ level }) => level === "problem").length ?? 0;
  return (
    <section class="settings-part" aria-labelledby="findings">
      <h3 id="findings" tabIndex={-1}>{t.findings}</h3>
      {error && <ErrorNote title={t.findingsFailed} error={error} onRetry={again} />}
      <p class="muted" role="status">{value === undefined ? isBusy && t.checking : t.wrong(wrong)}</p>
      {value && (
        <List label={t.findings}>
          {ordered(value).map((finding, index) => (
            <FindingRow key={index} finding={finding} serverTexts={serverTexts} />
          ))}
        </List>
      )}
      <div class="actions-row">
        <Button icon="search" isBusy={isBusy} onClick={again}>{t.checkAgain}</Button>
      </div>
    </section>
  );
}

const ICONS: Record<Finding["level"], IconName> = { ok: "check", note: "bell", problem: "warning" };

function FindingRow({ finding, serverTexts }: { finding: Finding; serverTexts: ServerTexts | undefined }) {
  const { level } = finding;
  const { about, remedy } = translateFinding(serverTexts, finding);
  return (
    <ListRow
      start={
        <span class={`finding ${level}`}>
          <Icon name={ICONS[level]} />
        </span>
      }
      title={about}
      text={[texts.about.levels[level], remedy].filter(Boolean).join(" · ")}
    />
  );
}

/** Problems first. */
function ordered(findings: readonly Finding[]): Finding[] {
  const levels: Finding["level"][] = ["problem", "note", "ok"];
  return [...findings].sort((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}

/** A button, then the packages. */
function Licenses() {
  const t = texts.licenses;
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="settings-part" aria-labelledby="licences">
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
  const t = texts.licenses;
  const { value, error, again } = useResource(() => readLicenses(api.client));
  const [query, setQuery] = useState("");
  if (error) return <ErrorNote title={t.failed} error={error} onRetry={again} />;
  if (value === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const text = foldForSearch(query.trim());
  const found = value.filter(({ name, licence }) => foldForSearch(`${name} ${licence}`).includes(text));
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
          ? <p class="muted">{texts.licenses.noText}</p>
          : <pre class="licence-text" tabIndex={0} role="region" aria-label={name}>{text}</pre>)}
      </details>
    </li>
  );
}
