import{f as e}from"./chunk-YTT3ZB6P.js";import"./chunk-OOJM4CTU.js";e();
