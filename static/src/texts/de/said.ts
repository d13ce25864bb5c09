/** Sentences of the server. */
import type { Said } from "../said.ts";

/** German. */
export const said: Said = {
  reasons: {
    not_plain_file: "es ist keine gewöhnliche Datei innerhalb des Imports",
    unreadable: "es kann nicht gelesen werden",
    not_json: "es ist kein JSON in UTF-8",
    not_whole_json: "es ist kein vollständiges JSON",
    not_object: "es ist kein JSON-Objekt",
    no_chat: "es ist kein Chat",
    no_messages: "es hat keine Nachrichten",
    messages_missing: "seine Nachrichten fehlen",
    not_jsonl: "es ist keine .jsonl-Datei",
    no_chats_inside: "Dateien, die keine Chats sind, bleiben weg",
    broken_line: "Zeile {line} ist kein JSON-Objekt und wurde übergangen",
    broken_lines: "{count} Zeilen sind keine JSON-Objekte",
    picture_missing: "das Bild „{picture}“ ist nicht da",
    chatgpt_pictures: "seine Bilder sind nicht in der Datei der Chats und kommen nicht herein",
    changed_here: "es ist schon hier und ging hier weiter oder wurde geändert, seit es hereinkam: gelassen, wie es ist",
    picture_unreadable: "sein Bild kann nicht gelesen werden",
    came_without_picture: "sein Bild kann nicht gelesen werden: es kam ohne herein",
    avatar_missing: "sein Bild ist nicht in der Datei: es kommt ohne herein",
    avatar_not_there: "sein Bild ist nicht da: es kommt ohne herein",
    keyless: "Schlüssel stehen in keinem Export: Geben Sie seinen neu ein",
    keys_left_out:
      "Schlüssel von Diensten und Einstellungen werden nicht übernommen; geben Sie Verbindungen unter Verbindungen ein",
    service_keys_left_out: "Schlüssel von Diensten werden nicht übernommen; geben Sie sie unter Verbindungen ein",
    character_missing: "seine Figur „{card}“ ist nicht da: der Chat kommt ohne sie herein",
    group_missing: "keine Gruppe hat diesen Chat: er kommt ohne Figuren herein",
    members_missing: "Figuren der Gruppe sind nicht da: {cards}",
    no_persona_has_it: "keine Persona hat dieses Bild",
    backgrounds: "Hintergründe bleiben weg: Chats haben hier keine",
    thumbnails: "Vorschaubilder werden neu gemacht",
    backups: "Sicherungen sind Kopien dessen, was hereinkommt",
    themes: "Themes gehören zur Seite von SillyTavern",
    presets_of_service: "diese Presets sind für einen Dienst, mit dem Parlor nicht spricht",
    presets_of_interface: "diese Presets sind für eine Schnittstelle, die Parlor nicht spricht",
    instruct: "Instruct-Vorlagen bleiben weg: Server wenden die Vorlage ihres Modells an",
    context: "Kontextvorlagen bleiben weg: Server wenden die Vorlage ihres Modells an",
    sillytavern_own: "es gehört zu SillyTavern selbst und hat hier keinen Platz",
    agnai_not: "es ist keine Datei von Agnai",
    agnai_scenarios: "Szenarien, die sich mit einem Chat ändern, haben hier keinen Platz",
    agnai_templates: "Vorlagen von Prompts bleiben weg: sie sind in Agnais eigener Sprache",
    agnai_presets: "Prompts von Presets bleiben weg: sie sind in Agnais eigener Sprache",
    agnai_trees: "Bäume von Chats werden aus ihren Nachrichten gemacht",
    chat_without_character: "seine Figur ist nicht in der Datei: der Chat kommt ohne sie herein",
    agnai_overrides: "was er anstelle seiner Figur sagt, bleibt weg: {fields}",
    risu_not: "es ist keine Datei von RisuAI",
    risu_neither: "es ist weder eine Karte noch eine Persona",
    risu_persona: "seine Persona kann nicht gelesen werden",
    risu_no_entries: "sein Lorebook hat keine Einträge",
    risu_text_chat: "ein Chat als Text oder Seite hat weder Zeiten noch Rollen: exportieren Sie ihn als JSON",
    risu_note: "ihre Notiz bleibt weg: Personas haben hier keine",
    risu_module:
      "von einem Modul kommt nur das Lorebook herein: seine Skripte und Bilder tun außerhalb von RisuAI nichts",
    risu_module_rest: "Skripte und Bilder eines Moduls bleiben weg: sie tun außerhalb von RisuAI nichts",
    risu_scripts: "Skripte bleiben weg: sie tun außerhalb von RisuAI nichts",
    risu_chats_without_character:
      "ihre Figur ist nicht in der Datei: Chats kommen ohne sie und ohne ihre Begrüßung herein",
    risu_presets: "Prompts von Presets bleiben weg: sie sind in RisuAIs eigener Vorlagensprache",
    risu_character_missing: "die Datei dieser Figur ist nicht da",
    risu_trash: "sie liegen im Papierkorb von RisuAI",
    risu_empty_chats: "niemand hat darin etwas gesagt",
    risu_chat_pictures: "{count} Bilder in seinen Nachrichten sind in keiner Datei von RisuAI und kommen nicht herein",
    risu_memory:
      "was RisuAI davon behalten hat, bleibt weg: Zusammenfassungen entstehen hier neu, wenn eine gebraucht wird",
    risu_variables: "die Variablen seiner Skripte bleiben weg",
    risu_voice: "ihr Stimmenmodell bleibt weg: Stimmen sind hier Proben eines Sprachservers",
    risu_card_scripts: "ihre Skripte bleiben für RisuAI in der Karte und tun hier nichts",
    risu_damaged: "es ist beschädigt: es lässt sich nicht auspacken",
    risu_cut_off: "es ist abgeschnitten",
    agnai_body: "ihr Körper aus Teilen bleibt in der Karte für Agnai, das allein ihn zeichnen kann",
    moods: "nur Bilder von Stimmungen kommen herein, aus einem Ordner, der wie die Datei einer Karte daneben heißt",
    kept_beside: "ihre weiteren Bilder und Töne bleiben bei ihr: ein Export als CHARX enthält sie",
    too_many_files: "ihre Figur hat zu viele weitere Dateien",
    risu_media: "{count} weitere Bilder und Töne davon sind nicht da",
    risu_module_empty: "dieses Modul hat kein Lorebook: seine Skripte und Bilder tun außerhalb von RisuAI nichts",
    risu_no_module: "es ist kein Modul von RisuAI, oder von einer neueren Art",
    risu_holds_no_module: "es enthält kein Modul",
    risu_module_damaged: "es ist beschädigt: sein Modul kann nicht gelesen werden",
    risu_no_preset: "es ist kein Preset von RisuAI, oder von einer neueren Art",
    risu_holds_no_preset: "es enthält kein Preset",
    risu_preset_damaged: "es ist beschädigt: sein Preset kann nicht geöffnet werden",
    risu_foreign: "es ist nicht von RisuAI oder beschädigt",
  },
  findings: {
    config_ok: { about: "Die Konfiguration ist lesbar" },
    config_bad: {
      about: "{error}",
      remedy: "Berichtigen Sie das; parlor --help und docs/configuration.md sagen, was gemeint ist",
    },
    named_file_missing: {
      about: "{key} nennt „{path}“: {error}",
      remedy: "Legen Sie es dorthin oder berichtigen Sie {key}",
    },
    auth_off: {
      about: "Niemand muss sich anmelden (require_auth = false)",
      remedy: "Setzen Sie require_auth = true; false ist für die Entwicklung",
    },
    credentials_unreadable: {
      about: "Die Passkeys können nicht gelesen werden, daher bleibt jede Adresse geschlossen: {error}",
      remedy:
        "Stellen Sie credentials.json aus einer Sicherung wieder her, oder löschen Sie die Datei und fügen Sie jeden Passkey neu hinzu",
    },
    open_loopback: {
      about: "Jeder Benutzer und jedes Programm dieses Rechners hat ohne Anmeldung die ganze API, unter {addresses}",
      remedy:
        "Öffnen Sie den Server im Browser als http://localhost und fügen Sie einen Passkey hinzu: Er schließt sie alle",
    },
    open_names: {
      about: "{names}: Wer den Server erreicht, hat dort die ganze API, bis der erste Passkey hinzugefügt ist",
      remedy: 'Fügen Sie dort einen Passkey hinzu, oder setzen Sie pairing = "code"',
    },
    open_patterns: {
      about:
        "{patterns} lässt sich nicht durch einen Passkey schließen: Ein Client kann darunter einen Namen ohne Passkey erfinden",
      remedy: 'Nennen Sie jeden Namen einzeln in allowed_hosts, oder setzen Sie pairing = "code"',
    },
    open_addresses: {
      about: "Wer {addresses} erreicht, braucht nie einen Passkey: Browser machen für eine IP-Adresse keinen",
      remedy:
        'Nehmen Sie einen Namen mit HTTPS, oder setzen Sie pairing = "code" und melden Sie sich dort mit Token an',
    },
    open_plain_names: {
      about: "{names} lässt sich nie durch einen Passkey schließen: Browser machen über HTTP keinen",
      remedy:
        "Setzen Sie tls_cert und tls_key, oder stellen Sie einen HTTPS-Proxy davor und nennen Sie ihn in trusted_proxies",
    },
    proxy_here_without_credentials: {
      about:
        "Einem Proxy auf diesem Rechner wird vertraut, während Anfragen von diesem Rechner keine Anmeldung brauchen",
      remedy:
        "Setzen Sie loopback_auth_bypass = false: Ein Proxy, der seinen Header vergisst, gibt jeden Besucher als Sie aus",
    },
    machine_without_credentials: {
      about: "Jeder Benutzer und jedes Programm dieses Rechners hat die ganze API (loopback_auth_bypass = true)",
      remedy: "Wo andere diesen Rechner benutzen, setzen Sie loopback_auth_bypass = false",
    },
    no_name_allowed: {
      about: "Der Server lauscht auf {host}, aber kein Name darf ihn von anderswo erreichen",
      remedy: "Nennen Sie den Host, unter dem er erreicht wird, in allowed_hosts, oder setzen Sie host = 127.0.0.1",
    },
    guard_allow: {
      about: "Adressen in Karten und Seiten dürfen zu {addresses} führen (guard_allow)",
      remedy: "Lassen Sie in guard_allow nur, woher eine Karte oder ein Download geholt werden muss",
    },
    reach_ok: { about: "Jede Adresse verlangt eine Anmeldung" },
    no_data_folder: { about: "Es gibt noch keinen Datenordner „{path}“; der erste Start legt ihn an" },
    data_folder_unreadable: {
      about: "„{path}“ kann nicht angesehen werden: {error}",
      remedy: "Führen Sie dies als der Benutzer aus, unter dem der Server läuft",
    },
    open_to_others: {
      about: "Andere können „{path}“ lesen (Modus {mode})",
      remedy:
        'chmod {wanted} "{path}"; machen Sie einen neuen Schlüssel (parlor key rotate), falls andere es gelesen haben',
    },
    other_owner: {
      about: "„{path}“ gehört einem anderen Benutzer",
      remedy: "Führen Sie Parlor als dieser Benutzer aus, oder übergeben Sie den Ordner mit chown",
    },
    modes_ok: { about: "Nur sein Besitzer liest „{path}“" },
    interrupted_restore: {
      about: "Eine Wiederherstellung oder ein Schlüsselwechsel wurde unterbrochen",
      remedy: "Der nächste Start führt das zu Ende oder verwirft es; starten Sie den Server einmal",
    },
    database_unusable: {
      about: "Die Datenbank ist nicht zu gebrauchen: {error}",
      remedy: "Stellen Sie eine Sicherung wieder her (parlor restore FILE --replace), oder legen Sie die Datei zurück",
    },
    no_database: { about: "Es gibt noch keine Datenbank; der erste Start legt sie an" },
    key_unreadable: {
      about: "Die Datenbank wurde nicht angesehen: {error}",
      remedy: "Bringen Sie den Speicherschlüssel in Ordnung und sehen Sie dann noch einmal nach",
    },
    key_missing: {
      about: "Der Speicherschlüssel von „{path}“ fehlt",
      remedy: "Legen Sie ihn zurück: parlor key import FILE, oder setzen Sie storage_key_file",
    },
    schema_newer: {
      about: "Die Datenbank hat Schema {version}, und dieses Programm kennt Schemata bis {newest}",
      remedy: "Starten Sie wieder das neuere Programm",
    },
    database_ok: { about: "Die Datenbank ist heil und öffnet sich mit dem Speicherschlüssel (Schema {version})" },
    clock_ok: { about: "Die Uhr geht dem zuletzt Gespeicherten nicht nach" },
    clock_behind: {
      about: "Die Uhr zeigt {now}, und das liegt vor dem zuletzt Gespeicherten",
      remedy: "Stellen Sie die Uhr dieses Rechners, am besten über NTP",
    },
    disk_unknown: {
      about: "Wie viel Platz „{path}“ hat, ist nicht zu sehen: {error}",
      remedy: "Sehen Sie nach, ob sein Datenträger eingehängt ist",
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
      about: "{key} nennt „{path}“, und das ist kein Programm",
      remedy: "Berichtigen Sie {key}, oder lassen Sie es weg, dann wird in PATH gesucht",
    },
    program_ok: { about: "{program} ist „{path}“" },
    no_yt_dlp: {
      about: "{program} wurde nicht gefunden",
      remedy: "Installieren Sie es, oder setzen Sie {key}, um Stimmproben von Seiten zu holen",
    },
    no_llama_server: {
      about: "{program} wurde nicht gefunden",
      remedy: "Installieren Sie es, oder setzen Sie {key}, um ein geladenes Modell laufen zu lassen",
    },
    no_tailscaled: {
      about: "{program} wurde nicht gefunden",
      remedy: "Installieren Sie es, oder setzen Sie {key}, um im Tailnet zu sein",
    },
    other_server: {
      about: "Was unter „{url}“ antwortet, ist kein Parlor: Status {status}",
      remedy: "Richten Sie den Proxy oder --url auf Parlor",
    },
    server_ok: { about: "Unter „{url}“ antwortet ein Server" },
    server_unreachable: {
      about: "„{url}“ ist nicht zu erreichen: {error}",
      remedy: "Starten Sie den Server, oder berichtigen Sie Proxy, Namen und Zertifikat",
    },
    server_off: {
      about: "Unter „{url}“ läuft kein Server, also wurde sein Modell nicht gefragt",
      remedy: "Starten Sie ihn, und führen Sie parlor doctor noch einmal aus",
    },
    clocks_differ: {
      about: "Die Uhren hier und dort gehen {seconds} s auseinander",
      remedy: "Stellen Sie beide über NTP",
    },
    host_refused: {
      about: "Der Server lässt sich unter „{url}“ nicht erreichen",
      remedy: "Nennen Sie diesen Host in allowed_hosts",
    },
    proxy_untrusted: {
      about: "Vor dem Server steht ein Proxy, dem nicht vertraut wird",
      remedy: "Nennen Sie seine Adresse in trusted_proxies",
    },
    no_passkeys: {
      about: "Kein Browser macht unter „{url}“ einen Passkey",
      remedy: "Erreichen Sie ihn unter einem Namen mit HTTPS",
    },
    health_untold: { about: "Der Server sagte nicht, wie es seinem Modell geht: Status {status}" },
    no_connection: {
      about: "Keine Verbindung zu einem Modell ist in Gebrauch",
      remedy: "Wählen Sie eine unter Einstellungen, Verbindungen",
    },
    model_ok: { about: "Das Modell von „{name}“ antwortet in {ms} ms" },
    model_silent: {
      about: "Das Modell von „{name}“ antwortet nicht: {error}",
      remedy: "Starten Sie seinen Server, oder berichtigen Sie die Verbindung unter Einstellungen, Verbindungen",
    },
  },
};
