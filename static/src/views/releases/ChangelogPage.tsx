/** What is new: the notes of a newer version, then the changelog of this one. */
import { useMemo, useState } from "preact/hooks";
import { getReleases, readChangelog } from "../../api/server.ts";
import type { Releases } from "../../api/types.ts";
import { Markdown } from "../../components/content/Markdown.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";

/** The page. */
export function ChangelogPage() {
  const { api } = useStore();
  const releases = useResource(() => getReleases(api.client), "release_check");
  const { value, error, again } = useResource(() => readChangelog(api.client));
  const versions = useMemo(() => splitVersions(value ?? ""), [value]);
  const t = texts.releases;
  return (
    <section class="settings-parts">
      <h2>{t.changelog}</h2>
      {releases.value?.newer && <NewerVersion newer={releases.value.newer} version={releases.value.version} />}
      {error && <ErrorNote title={t.changelogFailed} error={error} onRetry={again} />}
      {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {versions.map((version, index) => <Version key={version.title} {...version} isFirst={index === 0} />)}
    </section>
  );
}

function NewerVersion({ newer, version }: { newer: NonNullable<Releases["newer"]>; version: string }) {
  const t = texts.releases;
  return (
    <section class="settings-part" aria-labelledby="newer-version">
      <h3 id="newer-version" tabIndex={-1}>{t.available(newer.version)}</h3>
      <p class="muted">{t.installed(version)} {t.howToUpgrade}</p>
      {newer.url && (
        <p>
          <a href={newer.url} target="_blank" rel="noopener noreferrer">{t.releasePage}</a>
        </p>
      )}
      {newer.notes && <Markdown text={newer.notes} isFinal hasBreaks={false} />}
    </section>
  );
}

/** The changes of one version. */
interface VersionChanges {
  title: string;
  /** By kind, such as "Added". Each is rendered by itself: all versions together would exceed the limits of a message. */
  parts: { title: string; text: string }[];
}

/** The changes of older versions are rendered when they are opened. */
function Version({ title, parts, isFirst }: VersionChanges & { isFirst: boolean }) {
  const [isOpen, setOpen] = useState(isFirst);
  return (
    <details
      class="settings-part import-lines"
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        <strong>{title}</strong>
      </summary>
      {isOpen && parts.map((part) => (
        <section key={part.title}>
          {part.title !== "" && <h3>{part.title}</h3>}
          <Markdown text={part.text} isFinal hasBreaks={false} />
        </section>
      ))}
    </details>
  );
}

/** A link to another page of the source, which isn't part of the program. */
const SOURCE_LINK = /\[([^\]]+)\]\((?!https?:)[^)]*\)/g;

/** Splits a changelog at the headings of its versions and their parts. What comes before the first version is left out. */
function splitVersions(text: string): VersionChanges[] {
  return text.replace(SOURCE_LINK, "$1").split(/^## /m).slice(1).map((version) => {
    const [title = "", ...rest] = version.split("\n");
    const [before = "", ...parts] = rest.join("\n").split(/^### /m);
    return {
      title: title.trim(),
      parts: [{ title: "", text: before.trim() }, ...parts.map(splitTitle)].filter((part) => part.text !== ""),
    };
  });
}

function splitTitle(part: string): { title: string; text: string } {
  const [title = "", ...rest] = part.split("\n");
  return { title: title.trim(), text: rest.join("\n").trim() };
}
