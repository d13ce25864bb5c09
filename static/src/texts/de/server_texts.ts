/** Sentences of the server. */
import type { ServerTexts } from "../server_texts.ts";

/** German. */
export const serverTexts: ServerTexts = {
  reasons: {
    not_plain_file: "keine gewöhnliche Datei innerhalb des Imports",
    unreadable: "lässt sich nicht lesen",
    too_long: "zu lang für den Import",
    not_json: "kein gültiges JSON in UTF-8",
    not_whole_json: "das JSON ist unvollständig",
    not_object: "kein JSON-Objekt",
    not_chat: "kein Chat",
    no_messages: "der Chat hat keine Nachrichten",
    messages_missing: "die Nachrichten fehlen",
    not_jsonl: "keine .jsonl-Datei",
    other_parts: "Teile einer Art, die nicht importiert wird: {kinds}",
    other_files: "Dateien ohne Chats werden nicht importiert",
    broken_line: "Zeile {line} übersprungen: kein JSON-Objekt",
    broken_lines: "übersprungene Zeilen, die keine JSON-Objekte sind: {count}",
    image_missing: "das Bild „{image}“ fehlt",
    files_not_in_export: "die Dateien sind im Export nicht enthalten",
    claude_instructions: "die Anweisungen des Projekts „{project}“ werden nicht importiert",
    artifact_edits: "spätere Änderungen an Artefakten werden nicht übernommen",
    chatgpt_images: "die Bilder sind im Chat-Export nicht enthalten",
    chatgpt_audio: "Aufnahmen gesprochener Nachrichten werden nicht importiert, ihr Text schon",
    chatgpt_files: "angehängte Dateien werden nicht importiert: {kinds}",
    chatgpt_citations: "Quellenangaben ohne Link sind weggelassen",
    chatgpt_canvas_edits: "Änderungen an Canvas-Texten, die sich nicht anwenden lassen: {kinds}",
    chatgpt_unknown: "Nachrichten einer Art, die Parlor nicht kennt: {kinds}",
    changed_here: "schon vorhanden und seit dem letzten Import hier geändert: bleibt unverändert",
    image_unreadable: "das Bild lässt sich nicht lesen",
    avatar_unreadable: "ohne Bild importiert: Das Bild lässt sich nicht lesen",
    avatar_not_in_file: "ohne Bild importiert: Die Datei enthält es nicht",
    avatar_missing: "ohne Bild importiert: Das Bild fehlt",
    enter_key: "Exporte enthalten keine API-Schlüssel: Geben Sie den Schlüssel erneut ein",
    server_not_chosen:
      "„{server}“ wird noch nicht verwendet: Wählen Sie die Verbindung, wenn Sie diesem Server vertrauen",
    recordings_left_off:
      "Aufnahmen werden weiterhin nicht behalten: Schalten Sie das in den Einstellungen ein, wenn Sie es möchten",
    proposals_left_off:
      "Vorschläge von Erinnerungen bleiben aus: Schalten Sie sie unter „Gedächtnis“ ein, wenn Sie sie möchten",
    speech_left_off:
      "der Sprachserver „{server}“ wird nicht hinzugefügt: Fügen Sie ihn unter „Sprache“ hinzu, wenn Sie ihm vertrauen",
    transcription_left_off:
      "der Transkriptionsserver „{server}“ wird nicht hinzugefügt: Fügen Sie ihn unter „Sprache“ hinzu, wenn Sie ihm vertrauen",
    web_tools_left_off:
      "Websuche und Seitenlesen („{server}“) bleiben aus: Schalten Sie sie unter „Werkzeuge“ ein, wenn Sie dem Suchserver vertrauen",
    notifications_left_off:
      "Benachrichtigungen über „{server}“ bleiben aus: Speichern Sie die Adresse unter „Zugriff“, wenn Sie ihr vertrauen",
    source_not_kept: "die Datei wird nicht aufgehoben, um sie erneut zu lesen: der Datenträger ist voll",
    reply_not_finished: "eine Antwort war beim Export des Chats noch nicht fertig: als unterbrochen importiert",
    tool_server_left_off: "bleibt aus: Schalten Sie „{server}“ unter „Werkzeuge“ ein, wenn Sie ihm vertrauen",
    keys_left_out:
      "API-Schlüssel und Einstellungen werden nicht importiert: Fügen Sie Ihre Dienste unter „Verbindungen“ hinzu",
    service_keys_left_out: "API-Schlüssel werden nicht importiert: Fügen Sie Ihre Dienste unter „Verbindungen“ hinzu",
    character_missing: "ohne Figur importiert: „{card}“ fehlt",
    group_missing: "ohne Figuren importiert: Keine Gruppe enthält diesen Chat",
    members_missing: "einige Figuren der Gruppe fehlen: {cards}",
    empty_entries: "Einträge ohne Schlüssel und Text werden nicht importiert: {entries}",
    persona_image_unused: "keine Persona verwendet dieses Bild",
    backgrounds:
      "Hintergründe werden nicht importiert: in den Optionen eines Chats oder in den Einstellungen auswählen",
    thumbnails: "Vorschaubilder werden bei Bedarf neu erstellt",
    backups: "Sicherungen sind Kopien von Daten, die ohnehin importiert werden",
    themes: "Designs funktionieren nur in SillyTavern",
    presets_of_service: "Presets für einen Dienst, den Parlor nicht unterstützt",
    presets_of_interface: "Presets für eine API, die Parlor nicht unterstützt",
    instruct: "Instruct-Vorlagen werden nicht importiert: Der Modellserver verwendet die Vorlage des Modells",
    context: "Kontextvorlagen werden nicht importiert: Der Modellserver verwendet die Vorlage des Modells",
    tavern_book_linked: "das eingebettete Lorebook wird nicht importiert: das verknüpfte „{book}“ ersetzt es",
    tavern_note_off: "die Autorennotiz ist in SillyTavern ausgeschaltet und wird nicht importiert",
    tavern_parent_missing: "als eigener Chat importiert: „{chat}“, dessen Zweig er ist, fehlt",
    tavern_own_settings: "Einstellungen mit eigenen Texten oder Daten, für die Parlor keinen Platz hat: {names}",
    tavern_settings: "andere Einstellungen von SillyTavern: {names}",
    quick_reply_scripts: "Schnellantworten, die Skripte ohne Schaltfläche sind, werden nicht importiert: {names}",
    quick_reply_scripts_shown: "Schnellantworten, die Skripte sind, haben Schaltflächen ohne Wirkung: {names}",
    quick_reply_menus: "Die Menüs von Schnellantworten werden nicht importiert: {names}",
    quick_reply_automatic: "Schnellantworten werden nur mit ihrer Schaltfläche gesendet, nicht automatisch: {names}",
    unused_part: "{part} ({names})",
    quick_replies_beyond: "Schnellantworten, die für Vorlagen zu lang oder zu viele sind: {names}",
    sillytavern_own: "wird nur von SillyTavern verwendet",
    agnai_not: "keine Agnai-Datei",
    agnai_scenarios: "Szenarien, die sich während eines Chats ändern, werden nicht unterstützt",
    agnai_templates: "Prompt-Vorlagen werden nicht importiert: Sie verwenden die Vorlagensprache von Agnai",
    agnai_presets: "die Prompts von Presets werden nicht importiert: Sie verwenden die Vorlagensprache von Agnai",
    agnai_trees: "Chat-Verzweigungen werden aus den Nachrichten neu aufgebaut",
    chat_without_character: "ohne Figur importiert: Die Datei enthält sie nicht",
    agnai_overrides: "Felder, die die Figur überschreiben, werden nicht importiert: {fields}",
    backyard_images: "die weiteren Bilder werden nicht importiert: eine Figur hat ein Porträt",
    backyard_sampling: "Sampling-Einstellungen der Szenarien werden nicht importiert: ein Preset wählen",
    backyard_scenario: "vom Szenario „{title}“, das keinen Chat hat, wird nur die Begrüßung importiert",
    risu_not: "keine RisuAI-Datei",
    risu_neither: "weder Karte noch Persona",
    risu_persona: "die Persona lässt sich nicht lesen",
    risu_no_entries: "das Lorebook hat keine Einträge",
    risu_text_chat:
      "als Text oder HTML exportierte Chats haben keine Zeiten und Rollen: Exportieren Sie den Chat als JSON",
    risu_note: "die Notiz wird nicht importiert: Personas haben in Parlor keine Notizen",
    risu_module: "nur das Lorebook des Moduls wird importiert: Skripte und Bilder funktionieren nur in RisuAI",
    risu_module_rest: "Skripte und Bilder des Moduls werden nicht importiert: Sie funktionieren nur in RisuAI",
    risu_scripts: "Skripte werden nicht importiert: Sie funktionieren nur in RisuAI",
    risu_chats_without_character: "Chats ohne ihre Figur und deren Begrüßung importiert: Die Datei enthält sie nicht",
    risu_presets: "die Prompts von Presets werden nicht importiert: Sie verwenden die Vorlagensprache von RisuAI",
    risu_character_missing: "die Datei der Figur fehlt",
    risu_trash: "im Papierkorb von RisuAI",
    empty_chats: "Chats ohne Nachrichten",
    risu_chat_images: "in den RisuAI-Daten fehlende Bilder: {count}",
    risu_cold:
      "die Nachrichten liegen im Langzeitspeicher (Cold Storage) von RisuAI und nicht in dieser Datei: Öffnen Sie den Chat in RisuAI einmal und exportieren Sie ihn erneut",
    risu_memory:
      "das Gedächtnis von RisuAI wird nicht importiert: Parlor schreibt bei Bedarf eine neue Zusammenfassung",
    risu_variables: "Skriptvariablen werden nicht importiert",
    risu_voice: "das Stimmmodell wird nicht importiert: Parlor verwendet Stimmproben eines Sprachservers",
    risu_card_scripts: "die Skripte bleiben für RisuAI in der Karte und haben in Parlor keine Wirkung",
    risu_damaged: "beschädigt: lässt sich nicht entpacken",
    risu_cut_off: "die Datei ist unvollständig",
    agnai_body: "das Sprite bleibt für Agnai in der Karte: Parlor kann es nicht zeichnen",
    expressions_only: "nur Ausdrucksbilder werden importiert, aus dem Ordner mit dem Namen der Figur",
    files_in_card: "weitere Bilder und Töne sind bei der Figur gespeichert: Ein Export als CHARX enthält sie",
    too_many_files: "die Figur hat zu viele Dateien",
    risu_media: "fehlende Bilder und Töne: {count}",
    risu_module_empty: "das Modul hat kein Lorebook: Skripte und Bilder funktionieren nur in RisuAI",
    risu_no_module: "kein RisuAI-Modul oder eine neuere Version des Formats",
    risu_holds_no_module: "die Datei enthält kein Modul",
    risu_module_damaged: "beschädigt: Das Modul lässt sich nicht lesen",
    risu_no_preset: "kein RisuAI-Preset oder eine neuere Version des Formats",
    risu_holds_no_preset: "die Datei enthält kein Preset",
    risu_preset_damaged: "beschädigt: Das Preset lässt sich nicht entschlüsseln",
    risu_foreign: "nicht von RisuAI oder beschädigt",
  },
  ledger: {
    unknown_macro: "Makros, die Parlor nicht hat: Sie werden unverändert gesendet",
    unreadable_part: "Teile der Karte, die nicht gelesen werden können und unverändert bleiben",
    regex_script: "Regex-Skripte: Sie laufen in einem Chat, sobald Sie sie dort erlauben",
    card_script: "Skripte eines anderen Programms, die erhalten bleiben, aber nicht ausgeführt werden",
    remote_asset: "Bilder und Töne unter Webadressen, die nicht abgerufen werden",
    program_data: "Daten anderer Programme, die ohne Wirkung erhalten bleiben",
    unknown_field: "Felder, die Parlor nicht kennt und ohne Wirkung behält",
    preset_regex_script: "Regex-Skripte: Sie laufen in einem Chat, sobald Sie sie dort erlauben",
    preset_marker: "Prompts, die für einen Teil des Chats stehen, den Parlor nicht kennt",
    preset_connection: "Einstellungen der Verbindung von SillyTavern: Verbindungen in Parlor haben ihre eigenen",
    preset_logit_bias: "Logit-Bias: Andere Server als llama.cpp verwenden nur Token-IDs, manche gar keinen",
    preset_setting: "Einstellungen ohne Wirkung in Parlor, die für den Export erhalten bleiben",
    empty_entry_left_out: "Einträge ohne Schlüssel und Text, die nicht importiert wurden",
    empty_entry: "Einträge ohne Schlüssel und Text, die keine Wirkung haben",
    unreadable_entry: "Einträge, die nicht gelesen werden können und unverändert bleiben",
    vectorized: "Einträge, die SillyTavern auch nach Bedeutung findet: hier nur über ihre Schlüssel",
    automation: "Automatisierungen von Einträgen, die nicht ausgeführt werden",
    foreign_book_settings: "Einstellungen von Lorebooks, die nur in einem anderen Programm wirken und erhalten bleiben",
  },
  findings: {
    config_ok: { about: "Die Konfiguration ist lesbar" },
    config_bad: {
      about: "{error}",
      remedy: "Korrigieren Sie die Konfiguration; siehe parlor --help und docs/configuration.md",
    },
    named_file_missing: {
      about: "{key} ist „{path}“: {error}",
      remedy: "Legen Sie die Datei an, oder korrigieren Sie {key}",
    },
    auth_off: {
      about: "Die Anmeldung ist ausgeschaltet (require_auth = false)",
      remedy: "Setzen Sie require_auth = true; false ist nur für die Entwicklung gedacht",
    },
    open_loopback: {
      about:
        "Alle Benutzer und Programme auf diesem Rechner können die API ohne Anmeldung verwenden, unter {addresses}",
      remedy:
        "Öffnen Sie den Server im Browser unter {address} und fügen Sie einen Passkey hinzu: Er schützt alle diese Adressen",
    },
    open_loopback_without_page: {
      about:
        "Alle Benutzer und Programme auf diesem Rechner können die API ohne Anmeldung verwenden, unter {addresses}",
      remedy:
        'Setzen Sie pairing = "code": Unter diesen Adressen öffnet sich die Seite in dieser Einrichtung nicht, sodass dort kein Passkey hinzugefügt werden kann',
    },
    open_names: {
      about: "{names}: Wer den Server erreicht, kann die API verwenden, bis der erste Passkey hinzugefügt ist",
      remedy: 'Fügen Sie dort einen Passkey hinzu, oder setzen Sie pairing = "code"',
    },
    open_patterns: {
      about:
        "Ein Passkey kann {patterns} nicht schützen: Ein Client kann einen passenden Namen wählen, der keinen Passkey hat",
      remedy: 'Tragen Sie jeden Namen einzeln in allowed_hosts ein, oder setzen Sie pairing = "code"',
    },
    open_addresses: {
      about: "Wer {addresses} erreicht, braucht nie einen Passkey: Browser erstellen für IP-Adressen keine",
      remedy:
        'Verwenden Sie einen Namen mit HTTPS, oder setzen Sie pairing = "code" und melden Sie sich mit einem Token an',
    },
    open_plain_names: {
      about: "Ein Passkey kann {names} nie schützen: Browser erstellen über unverschlüsseltes HTTP keine",
      remedy:
        "Setzen Sie tls_cert und tls_key, oder verwenden Sie einen HTTPS-Proxy und tragen Sie ihn in trusted_proxies ein",
    },
    proxy_here_without_credentials: {
      about:
        "Ein Proxy auf diesem Rechner ist vertrauenswürdig, und Anfragen von diesem Rechner brauchen keine Anmeldung",
      remedy:
        "Setzen Sie loopback_auth_bypass = false: Lässt der Proxy seinen Header weg, wirkt jeder Besucher wie ein lokaler Benutzer",
    },
    few_open_files: {
      about: "Der Server kann nur noch {count} Dateien und Verbindungen öffnen (ulimit -n)",
      remedy: "Erhöhen Sie die Grenze auf mindestens 1024, zum Beispiel mit LimitNOFILE= in der systemd-Unit",
    },
    machine_without_credentials: {
      about:
        "Alle Benutzer und Programme auf diesem Rechner können die API ohne Anmeldung verwenden (loopback_auth_bypass = true)",
      remedy: "Wenn auch andere diesen Rechner benutzen, setzen Sie loopback_auth_bypass = false",
    },
    no_name_allowed: {
      about: "Der Server lauscht auf {host}, aber für andere Rechner ist kein Hostname zugelassen",
      remedy: "Tragen Sie den Hostnamen in allowed_hosts ein, oder setzen Sie host = 127.0.0.1",
    },
    exposed_plain: {
      about: "Andere Rechner können {address} möglicherweise erreichen, und zwar unverschlüsselt",
      remedy:
        "Sofern kein Proxy, Container und keine Firewall dazwischen ist, setzen Sie host = 127.0.0.1 oder tls_cert und tls_key",
    },
    guard_allow: {
      about: "URLs in Karten und Seiten dürfen {addresses} erreichen (guard_allow)",
      remedy: "Lassen Sie in guard_allow nur Adressen, die Karten oder Downloads erreichen müssen",
    },
    reach_ok: { about: "Jede Adresse verlangt eine Anmeldung" },
    no_data_folder: { about: "Es gibt noch keinen Datenordner „{path}“; der erste Start legt ihn an" },
    data_folder_unreadable: {
      about: "„{path}“ kann nicht geprüft werden: {error}",
      remedy: "Führen Sie dies als derselbe Benutzer aus wie den Server",
    },
    open_to_others: {
      about: "Andere können „{path}“ lesen (Modus {mode})",
      remedy:
        'chmod {wanted} "{path}"; erstellen Sie einen neuen Schlüssel (parlor key rotate), falls andere die Daten gelesen haben könnten',
    },
    other_owner: {
      about: "„{path}“ gehört einem anderen Benutzer",
      remedy: "Führen Sie Parlor als dieser Benutzer aus, oder ändern Sie den Besitzer des Ordners mit chown",
    },
    shared_folder: {
      about:
        "„{path}“ gehört einem anderen Benutzer (uid {owner}, Modus {mode}). Andere können darin vielleicht Dateien löschen, aber nicht lesen",
    },
    modes_ok: { about: "Nur der Besitzer kann „{path}“ lesen" },
    interrupted_restore: {
      about: "Eine Wiederherstellung oder ein Schlüsselwechsel wurde unterbrochen",
      remedy: "Starten Sie den Server einmal: Er schließt den Vorgang ab oder verwirft ihn",
    },
    database_unusable: {
      about: "Die Datenbank ist unbrauchbar: {error}",
      remedy:
        "Stellen Sie eine Sicherung wieder her (parlor restore FILE --replace), oder stellen Sie die Datei wieder her",
    },
    database_lost: {
      about: "Die Datenbank app.db fehlt, obwohl dieser Datenordner schon benutzt wurde",
      remedy:
        "Beenden Sie den Server, falls er läuft. Legen Sie app.db zurück, oder stellen Sie eine Sicherung wieder her (parlor restore FILE --replace)",
    },
    database_older: {
      about: "Am {at} war die Datenbank älter als beim vorigen Lauf: {count} Änderungen fehlen",
      remedy: "Wenn Sie keine ältere Kopie eingesetzt haben, stellen Sie die neueste Sicherung wieder her",
    },
    manifest_remade: {
      about:
        "Am {at} war die Liste des Gespeicherten beschädigt und wurde neu erstellt: Was vorher verändert wurde, fällt nicht auf",
      remedy:
        "Prüfen Sie den Datenträger. Für eine Datei ohne Schaden erstellen Sie eine Sicherung und stellen sie wieder her (parlor restore DATEI --replace)",
    },
    database_log_missing: {
      about:
        "Am {at} fehlte nach einem plötzlichen Ende das Protokoll app.db-wal der Datenbank: Die letzten Änderungen können verloren sein",
      remedy: "Lassen Sie app.db-wal liegen: Darin stehen die letzten Änderungen, bis ein Server ordentlich endet",
    },
    no_database: { about: "Es gibt noch keine Datenbank; der erste Start legt sie an" },
    key_unreadable: {
      about: "Die Datenbank wurde nicht geprüft: {error}",
      remedy: "Korrigieren Sie den Speicherschlüssel, und prüfen Sie dann erneut",
    },
    key_missing: {
      about: "Der Speicherschlüssel von „{path}“ fehlt",
      remedy: "Stellen Sie ihn wieder her (parlor key import FILE), oder setzen Sie storage_key_file",
    },
    key_wrong: {
      about: "Der Speicherschlüssel „{path}“ gehört nicht zu diesen Daten: {error}",
      remedy:
        "Stellen Sie den passenden Schlüssel wieder her (parlor key import FILE oder storage_key_file); ersetzen Sie keine Daten",
    },
    schema_newer: {
      about: "Die Datenbank hat Schema {version}, dieses Programm unterstützt aber nur Schemata bis {newest}",
      remedy: "Verwenden Sie die neuere Version von Parlor",
    },
    database_ok: { about: "Die Datenbank ist intakt und passt zum Speicherschlüssel (Schema {version})" },
    credentials_damaged: {
      about: "credentials.json mit den Passkeys ist beschädigt, daher bleibt jede Adresse geschlossen",
      remedy:
        "Stellen Sie credentials.json aus einer Sicherung wieder her, oder löschen Sie die Datei und fügen Sie jeden Passkey neu hinzu",
    },
    sealed_damaged: {
      about: "{count} verschlüsselte Dateien sind beschädigt oder fehlen: {paths}",
      remedy: "Stellen Sie sie aus einer Sicherung wieder her (parlor restore FILE --data-dir ORDNER, dann kopieren)",
    },
    database_damaged: {
      about: "Die Datenbank ist beschädigt: {error}",
      remedy:
        "Sehen Sie nach, was nicht lesbar ist (parlor doctor --deep), und stellen Sie es unter Einstellungen > Daten wieder her",
    },
    stored_unreadable: {
      about: "Nicht lesbar seit {since}: {count} ({paths})",
      remedy:
        "Stellen Sie es unter Einstellungen > Daten oder mit parlor restore --item PFAD wieder her. Was keine gute Kopie hat, können Sie löschen oder exportieren und wieder importieren",
    },
    stored_unknown: {
      about: "Die gespeicherten Daten wurden nicht geprüft: {error}",
      remedy: "Führen Sie dies als derselbe Benutzer aus wie den Server",
    },
    stored_unchecked: {
      about:
        "Die gespeicherten Daten wurden noch nicht vollständig geprüft; das tut der laufende Server oder parlor doctor --deep",
    },
    stored_ok: { about: "Am {at} waren alle gespeicherten Daten lesbar" },
    sealed_unknown: {
      about: "Die verschlüsselten Dateien wurden nicht geprüft: {error}",
      remedy: "Führen Sie dies als derselbe Benutzer aus wie den Server",
    },
    sealed_ok: { about: "Alle {count} verschlüsselten Dateien lassen sich öffnen" },
    sealed_ok_partly: {
      about: "{count} verschlüsselte Dateien lassen sich öffnen; parlor doctor prüft auch die übrigen",
    },
    backups_off: {
      about: "Automatische Sicherungen sind ausgeschaltet",
      remedy:
        "Wählen Sie unter Einstellungen > Daten einen Ordner auf einem anderen Datenträger, oder setzen Sie backup_dir",
    },
    backup_none_yet: { about: "Es gibt noch keine Sicherung; der laufende Server erstellt die erste" },
    backups_gone: {
      about: "Es wurden Sicherungen erstellt, aber „{path}“ enthält keine",
      remedy: "Prüfen Sie, ob der Datenträger von backup_dir eingehängt ist",
    },
    backup_dir_not_mounted: {
      about: "Der Datenträger von „{path}“ ist nicht eingehängt, daher werden keine Sicherungen erstellt",
      remedy: "Hängen Sie ihn ein, oder entfernen Sie backup_dir_must_be_mount",
    },
    backup_dir_unreadable: {
      about: "Die Sicherungen in „{path}“ wurden nicht geprüft: {error}",
      remedy: "Prüfen Sie, ob der Datenträger von backup_dir eingehängt ist und dieser Benutzer ihn lesen darf",
    },
    backup_failed: {
      about: "Die letzte Sicherung ist um {at} fehlgeschlagen: {error}",
      remedy: "Beheben Sie die Ursache, und starten Sie dann eine Sicherung unter Einstellungen > Daten",
    },
    backup_old: {
      about: "Die letzte Sicherung, „{name}“, ist {days} Tage alt",
      remedy: "Starten Sie den Server: Er erstellt täglich eine. Läuft er bereits, sehen Sie im Log nach",
    },
    backup_unusable: {
      about: "Die letzte Sicherung, „{name}“, lässt sich nicht wiederherstellen: {error}",
      remedy: "Starten Sie unter Einstellungen > Daten eine neue, und prüfen Sie den Datenträger von backup_dir",
    },
    backup_locked: {
      about: "Die letzte Sicherung, „{name}“, wurde nicht geöffnet: ihre Passphrase ist hier nicht bekannt",
      remedy: "Setzen Sie PARLOR_BACKUP_PASSPHRASE, und prüfen Sie erneut",
    },
    backup_ok: { about: "Die letzte Sicherung, „{name}“ (Parlor {version}), lässt sich wiederherstellen" },
    backup_opens: {
      about: "Die letzte Sicherung, „{name}“ (Parlor {version}), lässt sich öffnen; parlor doctor liest sie ganz",
    },
    clock_ok: { about: "Die Uhr geht nicht nach" },
    clock_behind: {
      about: "Die Uhr zeigt {now}. Das liegt vor dem Zeitpunkt der letzten Speicherung",
      remedy: "Stellen Sie die Uhr dieses Rechners, am besten über NTP",
    },
    clock_jumped: {
      about:
        "Zwischen {before} und {now} war der Server aus oder seine Uhr falsch: Papierkorb und frühere Versionen bleiben länger erhalten",
    },
    disk_unknown: {
      about: "Der freie Platz von „{path}“ ließ sich nicht ermitteln: {error}",
      remedy: "Prüfen Sie, ob der Datenträger eingehängt ist",
    },
    disk_full: {
      about: "„{path}“ hat {free} GiB frei",
      remedy: "Schaffen Sie Platz: Ist der Datenträger voll, wird nichts mehr gespeichert",
    },
    disk_little: {
      about: "„{path}“ hat {free} GiB frei",
      remedy: "Schaffen Sie Platz vor dem nächsten Modell oder der nächsten Sicherung",
    },
    disk_ok: { about: "„{path}“ hat {free} GiB frei" },
    no_program: {
      about: "{key} ist „{path}“, aber das ist kein Programm",
      remedy: "Korrigieren Sie {key}, oder entfernen Sie es, damit in PATH gesucht wird",
    },
    program_ok: { about: "{program} ist „{path}“" },
    no_yt_dlp: {
      about: "{program} wurde nicht gefunden",
      remedy: "Um Stimmproben von Websites zu holen, installieren Sie es oder setzen Sie {key}",
    },
    no_llama_server: {
      about: "{program} wurde nicht gefunden",
      remedy: "Um heruntergeladene Modelle auszuführen, installieren Sie es oder setzen Sie {key}",
    },
    no_tailscaled: {
      about: "{program} wurde nicht gefunden",
      remedy: "Um den Tailnet-Knoten zu verwenden, installieren Sie es oder setzen Sie {key}",
    },
    model_left: {
      about: "Das Modell {model} läuft ohne Parlor (Prozess {pid})",
      remedy: "Starten Sie Parlor, das es übernimmt. Von selbst endet es 10 Minuten nach Parlor, außer unter Windows",
    },
    other_server: {
      about: "„{url}“ ist kein Parlor-Server: Status {status}",
      remedy: "Lassen Sie den Proxy oder --url auf Parlor zeigen",
    },
    server_ok: { about: "Der Server unter „{url}“ antwortet" },
    server_unreachable: {
      about: "„{url}“ ist nicht erreichbar: {error}",
      remedy: "Starten Sie den Server, oder korrigieren Sie Proxy, Hostnamen und Zertifikat",
    },
    server_off: {
      about: "Unter „{url}“ läuft kein Server, daher ist der Zustand von Modell, Tailnet-Knoten und Aufgaben unbekannt",
      remedy: "Starten Sie den Server, und führen Sie parlor doctor erneut aus",
    },
    session_key_unreadable: {
      about:
        "Der Sitzungsschlüssel ist nicht lesbar, daher ist der Zustand von Modell, Tailnet-Knoten und Aufgaben unbekannt",
      remedy: "Führen Sie dies als der Benutzer des Servers und mit dessen Datenordner aus",
    },
    certificate_ok: { about: "Das Zertifikat ist bis {until} gültig" },
    certificate_expires: {
      about: "Das Zertifikat läuft am {until} ab",
      remedy: "Erneuern Sie tls_cert, und starten Sie den Server neu",
    },
    certificate_expired: {
      about: "Das Zertifikat ist nur von {from} bis {until} gültig",
      remedy: "Erneuern Sie tls_cert, und starten Sie den Server neu",
    },
    certificate_not_served: {
      about: "Der Server unter „{url}“ verwendet ein anderes Zertifikat als die Datei in tls_cert",
      remedy: "Wenn Sie das Zertifikat erneuert haben, starten Sie den Server neu",
    },
    clocks_differ: {
      about: "Die Uhren dieses Rechners und des Servers weichen um {seconds} s voneinander ab",
      remedy: "Stellen Sie beide über NTP",
    },
    host_refused: {
      about: "Der Server lässt den Zugriff unter „{url}“ nicht zu",
      remedy: "Tragen Sie den Hostnamen in allowed_hosts ein",
    },
    proxy_untrusted: {
      about: "Vor dem Server ist ein Proxy, der nicht als vertrauenswürdig eingetragen ist",
      remedy: "Tragen Sie die Adresse des Proxys in trusted_proxies ein",
    },
    no_passkeys: {
      about: "Browser können unter „{url}“ keine Passkeys erstellen",
      remedy: "Verwenden Sie einen Hostnamen mit HTTPS",
    },
    health_untold: { about: "Der Server hat den Zustand seines Modells nicht gemeldet: Status {status}" },
    tailnet_untold: { about: "Der Server hat den Zustand seines Tailnet-Knotens nicht gemeldet: Status {status}" },
    tailnet_ok: { about: "Der Tailnet-Knoten läuft unter {url}" },
    tailnet_down: {
      about: "Der Tailnet-Knoten ist eingeschaltet, läuft aber nicht (Zustand {state}): {error}",
      remedy: "Sehen Sie unter Einstellungen > Zugriff nach",
    },
    sign_ins_refused: {
      about: "Abgelehnte Anmeldungen in den letzten 24 Stunden: {count}. Die Adressen stehen im Log",
    },
    sign_ins_refused_often: {
      about: "Abgelehnte Anmeldungen in den letzten 24 Stunden: {count}. Vielleicht probiert jemand Zugangsdaten aus",
      remedy: "Sehen Sie die Adressen im Log nach, und sperren Sie sie, zum Beispiel mit fail2ban",
    },
    calls_untold: { about: "Der Server hat seine Verbindungen nicht gemeldet: Status {status}" },
    call_failed: {
      about: "Der letzte Aufruf der Verbindung „{name}“ ({id}) ist fehlgeschlagen: {error}",
      remedy: "Starten Sie den Server der Verbindung, oder korrigieren Sie sie unter Einstellungen > Verbindungen",
    },
    tool_servers_untold: { about: "Der Server hat seine Tool-Server nicht gemeldet: Status {status}" },
    tool_server_ok: { about: "Der Tool-Server „{name}“ ist bereit, Tools: {count}" },
    tool_server_failed: {
      about: "Der Tool-Server „{name}“ ist nicht verfügbar: {error}",
      remedy: "Testen Sie ihn unter Einstellungen > Tools oder schalten Sie ihn dort aus",
    },
    jobs_untold: { about: "Der Server hat seine Aufgaben nicht gemeldet: Status {status}" },
    jobs_failed: {
      about: "Fehlgeschlagene Aufgaben in den letzten 24 Stunden: {count}. Die letzte ist „{title}“: {error}",
      remedy: "Sehen Sie unter Aktivität nach",
    },
    no_connection: {
      about: "Keine Verbindung zu einem Modell ist aktiv",
      remedy: "Wählen Sie eine unter Einstellungen > Verbindungen",
    },
    model_ok: { about: "Das Modell von „{name}“ antwortet in {ms} ms" },
    model_silent: {
      about: "Das Modell von „{name}“ antwortet nicht: {error}",
      remedy:
        "Starten Sie den Server des Modells, oder korrigieren Sie die Verbindung unter Einstellungen > Verbindungen",
    },
  },
};
